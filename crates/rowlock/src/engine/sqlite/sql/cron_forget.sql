-- purpose: remove cron ?1
DELETE FROM rowlock_cron WHERE name = ?1
