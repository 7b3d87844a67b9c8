-- purpose: count a job that the switch of its queue refused
-- ?1 kind ?2 now ?3 queue ?4 declared queue, while the kind has no row
UPDATE main.rowlock_queue SET switch_rejected = switch_rejected + 1
WHERE queue = coalesce(?3, (SELECT k.queue FROM main.rowlock_kind AS k WHERE k.kind = ?1), ?4, 'default')
  AND switch = 'reject' AND coalesce(switch_until > ?2, 1)
