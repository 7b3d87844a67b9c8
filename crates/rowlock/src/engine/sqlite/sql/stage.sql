-- purpose: store a job as its kind says, unless a switch refuses it or its key is taken
-- moves: stage none -> pending
-- differs: resolved here and not in a function; the trigger of rowlock_enqueue keeps the same rules
-- ?1 kind ?2 payload ?3 queue ?4 priority ?5 scheduled_at ?6 max_attempts ?7 unique_key
-- ?8 unique_until ?9 tags ?10 trace_context ?11 backoff ?12 now
-- declared, while the kind has no row: ?13 queue ?14 priority ?15 max_attempts ?16 key_fields ?17 unique_until
INSERT INTO main.rowlock_job
    (kind, queue, priority, state, max_attempts, scheduled_at, created_at,
     unique_key, unique_until, key_held, tags, trace_context, backoff, payload)
SELECT s.kind, s.queue, s.priority, 'pending', s.max_attempts, ?5, ?12,
       s.unique_key, s.unique_until, s.unique_key IS NOT NULL, ?9, ?10, ?11, ?2
FROM (
    SELECT ?1 AS kind,
           coalesce(?3, k.queue, ?13, 'default') AS queue,
           coalesce(?4, k.priority, ?14, 0) AS priority,
           coalesce(?6, k.max_attempts, ?15, 5) AS max_attempts,
           coalesce(?7,
               (SELECT '[' || group_concat(CASE json_type(?2, '$."' || field.value || '"')
                    WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null'
                    WHEN 'object' THEN json_extract(?2, '$."' || field.value || '"')
                    WHEN 'array' THEN json_extract(?2, '$."' || field.value || '"')
                    -- Digits as written: beyond 64 bits two numbers would become one.
                    WHEN 'integer' THEN ?2 -> ('$."' || field.value || '"')
                    WHEN 'real' THEN ?2 -> ('$."' || field.value || '"')
                    ELSE json_quote(json_extract(?2, '$."' || field.value || '"')) END, ',') || ']'
                FROM json_each(coalesce(k.key_fields, ?16, '[]')) AS field)) AS unique_key,
           coalesce(?8, k.unique_until, ?17, 'finished') AS unique_until,
           coalesce(k.key_fields, ?16, '[]') AS key_fields,
           k.switch AS switch, k.switch_until AS switch_until
    FROM (SELECT 1) LEFT JOIN main.rowlock_kind AS k ON k.kind = ?1) AS s
LEFT JOIN main.rowlock_queue AS q ON q.queue = s.queue
WHERE NOT coalesce(s.switch = 'reject' AND coalesce(s.switch_until > ?12, 1), 0)
  AND NOT coalesce(q.switch = 'reject' AND coalesce(q.switch_until > ?12, 1), 0)
  AND (?7 IS NOT NULL OR s.key_fields = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(s.key_fields) AS field
        WHERE json_type(?2, '$."' || field.value || '"') IS NULL))
ON CONFLICT (kind, unique_key) WHERE key_held = 1 DO NOTHING
RETURNING id,
    EXISTS (SELECT 1 FROM main.rowlock_kind AS k WHERE k.kind = ?1
            AND k.switch = 'hold' AND coalesce(k.switch_until > ?12, 1))
 OR EXISTS (SELECT 1 FROM main.rowlock_queue AS q WHERE q.queue = CAST(rowlock_job.queue AS TEXT)
            AND q.switch = 'hold' AND coalesce(q.switch_until > ?12, 1))
