-- purpose: every worker but the routes: its last heartbeat, and the suspect that it had begun
-- Who is dead is for the observer to say: a heartbeat that stands still is one, whatever time a clock tells.
-- The fifth column is a guess by the server's clock, for a worker that runs once and is about to go.
SELECT w.number, w.id, w.lease_ms, w.seen_at, w.seen_at + w.lease_ms * interval '1 ms' <= rowlock.now(),
       job.attempt, job.id, job.token, coalesce(job.backoff, k.backoff)::text AS backoff
FROM rowlock.worker AS w
LEFT JOIN rowlock.aside AS job ON job.id = w.suspect_id AND job.token = w.suspect_token AND job.worker = w.number
LEFT JOIN rowlock.kind AS k ON k.kind = job.kind
-- What was sent is looked after by the next drain, whenever it comes.
WHERE w.id NOT LIKE 'drain:%'
ORDER BY w.number
