-- purpose: every cron with its last tick
SELECT cron.name, cron.declared, cron.paused, cron.next_at, last.tick, last.job_id
FROM rowlock_cron AS cron
LEFT JOIN rowlock_cron_tick AS last ON last.name = cron.name
     AND last.tick = (SELECT max(tick) FROM rowlock_cron_tick WHERE name = cron.name)
ORDER BY cron.name
