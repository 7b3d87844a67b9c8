-- purpose: switches that are on, of kinds, then of queues, then of pairs, and how many enqueues each refused
SELECT s.target, s.name, s.switch, s.switch_reason, s.switch_by, s.switch_until,
       (SELECT coalesce(sum(c.n), 0)::bigint FROM rowlock.switched AS c WHERE c.target = s.target AND c.name = s.name)
FROM (SELECT 1 AS at, 'kind' COLLATE "C" AS target, kind AS name, switch, switch_reason, switch_by, switch_until FROM rowlock.kind
      UNION ALL
      SELECT 2, 'queue', queue, switch, switch_reason, switch_by, switch_until FROM rowlock.queue
      UNION ALL
      SELECT 3, 'pair', name, switch, switch_reason, switch_by, switch_until FROM rowlock.pair) AS s
WHERE rowlock.is_on(s.switch, s.switch_until, rowlock.now(), 'reject', 'hold', 'pause')
ORDER BY s.at, s.name
