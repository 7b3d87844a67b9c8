-- purpose: the kinds and queues that a switch holds back at ?1
SELECT 'kind', kind FROM rowlock_kind WHERE switch = 'hold' AND coalesce(switch_until > ?1, 1)
UNION ALL
SELECT 'queue', queue FROM rowlock_queue WHERE switch = 'hold' AND coalesce(switch_until > ?1, 1)
