-- purpose: cron ?1 as it was declared
SELECT declared FROM rowlock_cron WHERE name = ?1
