-- purpose: switches that are on at ?1: of kinds, of queues, of pairs
SELECT 'kind' AS target, kind AS name, switch, switch_reason, switch_by, switch_until, switch_rejected
FROM rowlock_kind WHERE switch IS NOT NULL AND coalesce(switch_until > ?1, 1)
UNION ALL
SELECT 'queue', queue, switch, switch_reason, switch_by, switch_until, switch_rejected
FROM rowlock_queue WHERE switch IS NOT NULL AND coalesce(switch_until > ?1, 1)
UNION ALL
SELECT 'pair', name, switch, switch_reason, switch_by, switch_until, 0
FROM rowlock_pair WHERE switch IS NOT NULL AND coalesce(switch_until > ?1, 1)
