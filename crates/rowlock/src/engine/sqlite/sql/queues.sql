-- purpose: the queues that have settings
SELECT queue, coalesce(switch IN ('pause', 'hold') AND coalesce(switch_until > ?1, 1), 0), switch_reason
FROM rowlock_queue
