-- purpose: count ?2 jobs of a tick that the switch of kind ?1 refused
UPDATE main.rowlock_kind SET switch_rejected = switch_rejected + ?2 WHERE kind = ?1
