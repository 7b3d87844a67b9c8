-- purpose: set the switch of pair ?1
-- ?2 mode ?3 why ?4 who ?5 until
UPDATE rowlock_pair SET switch = ?2, switch_reason = ?3, switch_by = ?4, switch_until = ?5
WHERE name = ?1
