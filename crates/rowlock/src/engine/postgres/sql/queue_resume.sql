-- purpose: let claims from a queue go on
UPDATE rowlock.queue SET switch = NULL, switch_reason = NULL, switch_by = NULL, switch_until = NULL
WHERE queue = $1 AND switch = 'pause'
