-- purpose: remove the ticks of cron ?1
DELETE FROM rowlock_cron_tick WHERE name = ?1
