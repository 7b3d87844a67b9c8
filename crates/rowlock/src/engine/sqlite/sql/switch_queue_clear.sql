-- purpose: clear the switch of queue ?1 that is on at ?2
UPDATE rowlock_queue
SET switch = NULL, switch_reason = NULL, switch_by = NULL, switch_until = NULL, switch_rejected = 0
WHERE queue = ?1 AND switch IS NOT NULL AND coalesce(switch_until > ?2, 1)
