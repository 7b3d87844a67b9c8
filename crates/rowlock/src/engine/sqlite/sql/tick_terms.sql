-- purpose: how the jobs of a tick are stored: as their kind says, and what switches say at ?3
-- ?1 kind ?2 another queue or NULL ?3 now
SELECT coalesce(?2, k.queue), k.priority, k.max_attempts, k.unique_until,
       coalesce(k.switch = 'reject' AND coalesce(k.switch_until > ?3, 1), 0),
       coalesce(q.switch = 'reject' AND coalesce(q.switch_until > ?3, 1), 0)
FROM main.rowlock_kind AS k
LEFT JOIN main.rowlock_queue AS q ON q.queue = coalesce(?2, k.queue)
WHERE k.kind = ?1
