-- purpose: live jobs by queue, and ended ones by queue and state from their counts, in one snapshot
-- $1 now
SELECT job.queue, NULL AS state, count(*) FILTER (WHERE token IS NULL) AS n,
       count(*) FILTER (WHERE token IS NULL AND scheduled_at > $1) AS scheduled,
       count(*) FILTER (WHERE token IS NULL AND attempt > 0) AS retrying,
       count(*) FILTER (WHERE token IS NULL
           AND (rowlock.is_on(k.switch, k.switch_until, $1, 'hold') OR rowlock.is_on(q.switch, q.switch_until, $1, 'hold'))) AS held,
       count(*) FILTER (WHERE token IS NOT NULL) AS processing,
       extract(epoch FROM $1 - min(scheduled_at) FILTER (WHERE token IS NULL AND scheduled_at <= $1))::float8 AS oldest
FROM rowlock.job
LEFT JOIN rowlock.kind AS k ON k.kind = job.kind
LEFT JOIN rowlock.queue AS q ON q.queue = job.queue
GROUP BY job.queue
UNION ALL
SELECT queue, state, sum(n)::bigint, 0, 0, 0, 0, NULL FROM rowlock.tally GROUP BY queue, state
