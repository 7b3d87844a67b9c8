-- purpose: count a job that the switch of its kind refused
-- ?1 kind ?2 now
UPDATE main.rowlock_kind SET switch_rejected = switch_rejected + 1
WHERE kind = ?1 AND switch = 'reject' AND coalesce(switch_until > ?2, 1)
