-- purpose: let claims from a queue go on
UPDATE rowlock_queue
SET switch = NULL, switch_reason = NULL, switch_by = NULL, switch_until = NULL, switch_rejected = 0
WHERE queue = ?1 AND switch = 'pause'
