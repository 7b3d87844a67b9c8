-- purpose: count ?2 jobs of a tick that the switch of queue ?1 refused
UPDATE main.rowlock_queue SET switch_rejected = switch_rejected + ?2 WHERE queue = ?1
