-- purpose: set the switch of kind ?1, counting anew
-- ?2 mode ?3 why ?4 who ?5 until
INSERT INTO rowlock_kind (kind, switch, switch_reason, switch_by, switch_until) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (kind) DO UPDATE SET
    switch = ?2, switch_reason = ?3, switch_by = ?4, switch_until = ?5, switch_rejected = 0
