-- purpose: switches that are on at ?1, of kinds and then of queues
SELECT 0 AS of_queue, kind AS name, switch, switch_reason, switch_until FROM rowlock_kind
WHERE switch IS NOT NULL AND coalesce(switch_until > ?1, 1)
UNION ALL
SELECT 1, queue, switch, switch_reason, switch_until FROM rowlock_queue
WHERE switch IS NOT NULL AND coalesce(switch_until > ?1, 1)
ORDER BY of_queue, name
