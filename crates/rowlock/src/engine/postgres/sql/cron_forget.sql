-- purpose: remove a cron and its ticks, and with the last one the post of their leader
WITH ticks AS (
    DELETE FROM rowlock.cron_tick WHERE name = $1
), post AS (
    DELETE FROM rowlock.post WHERE duty = 'cron' AND NOT EXISTS (SELECT 1 FROM rowlock.cron WHERE name <> $1)
)
DELETE FROM rowlock.cron WHERE name = $1
