-- purpose: every worker but the routes, whether its lease is over, and the suspect that it had begun
-- differs: the server's time rules. After a restart everybody gets a whole lease to be heard again.
SELECT w.number, w.id, w.lease_ms, w.seen_at,
       w.seen_at + w.lease_ms * interval '1 ms' <= clock.now
           AND pg_postmaster_start_time() + w.lease_ms * interval '1 ms' <= clock.now AS dead,
       job.attempt, job.id, job.token, coalesce(job.backoff, k.backoff)::text AS backoff
FROM rowlock.now() AS clock (now)
CROSS JOIN rowlock.worker AS w
LEFT JOIN rowlock.aside AS job ON job.id = w.suspect_id AND job.token = w.suspect_token AND job.worker = w.number
LEFT JOIN rowlock.kind AS k ON k.kind = job.kind
-- What was sent is looked after by the next drain, whenever it comes.
WHERE w.id NOT LIKE 'drain:%'
ORDER BY w.number
