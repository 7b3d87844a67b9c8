-- purpose: clear the switch of kind ?1 that is on at ?2
UPDATE rowlock_kind
SET switch = NULL, switch_reason = NULL, switch_by = NULL, switch_until = NULL, switch_rejected = 0
WHERE kind = ?1 AND switch IS NOT NULL AND coalesce(switch_until > ?2, 1)
