-- purpose: the kinds and queues that a switch keeps from being claimed at ?1
SELECT 'kind', kind FROM rowlock_kind INDEXED BY rowlock_kind_switched
WHERE switch IS NOT NULL AND switch IN ('hold', 'pause') AND coalesce(switch_until > ?1, 1)
UNION ALL
SELECT 'queue', queue FROM rowlock_queue
WHERE switch IN ('hold', 'pause') AND coalesce(switch_until > ?1, 1)
