-- purpose: known kinds whose jobs have been due for more than a minute while none of them runs, though nothing stops them
SELECT job.kind, count(*) FILTER (WHERE job.scheduled_at <= rowlock.now()),
       (extract(epoch FROM rowlock.now() - min(job.scheduled_at)) * 1000)::bigint
FROM rowlock.job JOIN rowlock.kind AS k ON k.kind = job.kind LEFT JOIN rowlock.queue AS q ON q.queue = job.queue
WHERE NOT job.held AND k.route = 'direct' AND coalesce(q.route, 'direct') = 'direct'
  AND NOT rowlock.is_on(k.switch, k.switch_until, rowlock.now(), 'reject', 'hold', 'pause')
  AND NOT rowlock.is_on(q.switch, q.switch_until, rowlock.now(), 'reject', 'hold', 'pause')
GROUP BY job.kind
HAVING min(job.scheduled_at) < rowlock.now() - interval '1 min' AND count(job.token) = 0
ORDER BY job.kind
