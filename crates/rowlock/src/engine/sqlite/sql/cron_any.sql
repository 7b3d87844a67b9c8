-- purpose: whether there is any cron
SELECT EXISTS (SELECT 1 FROM rowlock_cron)
