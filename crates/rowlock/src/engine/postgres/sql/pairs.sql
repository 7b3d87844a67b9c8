-- purpose: every pair with how it is doing
SELECT p.declared::text, s.last_success,
       (extract(epoch FROM now - coalesce(s.last_success, p.declared_at)) * 1000)::bigint AS age_ms,
       s.took_ms, s.found, s.enqueued, s.lost, p.ineffective,
       (SELECT count(*) FROM rowlock.pair_key AS k
        WHERE k.pair = p.name AND k.reason <> 'done' AND coalesce(k.not_before > now, true)) AS held_back,
       s.ticks, s.error, s.leader, p.uncovered::text,
       CASE WHEN rowlock.is_on(p.switch, p.switch_until, now, 'pause') THEN p.switch END AS switch,
       p.switch_reason, p.switch_by, p.switch_until, p.name
FROM rowlock.now() AS now CROSS JOIN rowlock.pair AS p
CROSS JOIN LATERAL (
    SELECT CASE WHEN bool_and(o.last_success IS NOT NULL) THEN min(o.last_success) END AS last_success,
           max(o.last_took_ms) AS took_ms, sum(o.last_found)::bigint AS found, sum(o.last_enqueued)::bigint AS enqueued,
           sum(o.lost)::bigint AS lost, sum(o.ticks)::bigint AS ticks,
           (array_agg(o.error ORDER BY o.shard) FILTER (WHERE o.error IS NOT NULL))[1] AS error,
           (array_agg(o.holder ORDER BY o.shard))[1] AS leader
    FROM rowlock.post AS o WHERE o.duty = 'pair' AND o.name = p.name) AS s
ORDER BY p.name
