-- purpose: every cron, when it is due next, and its last tick; always a row, if only to tell the time
SELECT t.now, c.declared::text, c.paused, c.next_at, last.tick, last.job_id, c.name
FROM (SELECT rowlock.now() AS now) AS t LEFT JOIN rowlock.cron AS c ON true
LEFT JOIN LATERAL (
    SELECT k.tick, k.job_id FROM rowlock.cron_tick AS k WHERE k.name = c.name ORDER BY k.tick DESC LIMIT 1) AS last ON true
ORDER BY c.name
