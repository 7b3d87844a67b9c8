-- purpose: the next rows by falling id, each with whether it matches
-- ?1 state ?2 queue ?3 kind ?4 key ?5 tag ?6 since ?7 until ?8 before ?9 rows to look at
-- differs: whoever reads stops when he has enough, so that no row is read in vain
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, NULL AS finished_at, unique_key, tags, trace_context, errors, locked_by,
       (?1 IS NULL OR state = ?1)
       AND (?2 IS NULL OR queue = ?2)
       AND (?3 IS NULL OR kind = ?3)
       AND (?4 IS NULL OR unique_key IS ?4)
       AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?5))
       AND (?6 IS NULL OR created_at >= ?6)
       AND (?7 IS NULL OR created_at < ?7)
FROM rowlock_job
WHERE id < ?8 AND (?1 IS NULL OR ?1 IN ('pending', 'processing'))
UNION ALL
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors, NULL,
       (?1 IS NULL OR state = ?1)
       AND (?2 IS NULL OR queue = ?2)
       AND (?3 IS NULL OR kind = ?3)
       AND (?4 IS NULL OR unique_key IS ?4)
       AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?5))
       AND (?6 IS NULL OR created_at >= ?6)
       AND (?7 IS NULL OR created_at < ?7)
FROM rowlock_history
WHERE id < ?8 AND (?1 IS NULL OR ?1 NOT IN ('pending', 'processing'))
ORDER BY id DESC LIMIT ?9
