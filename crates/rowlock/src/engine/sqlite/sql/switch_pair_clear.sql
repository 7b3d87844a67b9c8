-- purpose: clear the switch of pair ?1 that is on at ?2
UPDATE rowlock_pair SET switch = NULL, switch_reason = NULL, switch_by = NULL, switch_until = NULL
WHERE name = ?1 AND switch IS NOT NULL AND coalesce(switch_until > ?2, 1)
