-- purpose: an ended job gets all its attempts again, keeping its id and its errors
-- moves: redrive completed -> pending
-- moves: redrive failed -> pending
-- moves: redrive cancelled -> pending
-- ?1 id ?2 now
INSERT INTO rowlock_job
    (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at, created_at,
     unique_key, unique_until, key_held, tags, trace_context, backoff, errors, payload)
SELECT id, kind, queue, priority, 'pending', 0, max_attempts, ?2, created_at,
       unique_key, unique_until, unique_key IS NOT NULL, tags, trace_context, backoff, errors, payload
FROM rowlock_history
WHERE id = ?1
ON CONFLICT (kind, unique_key) WHERE key_held = 1 DO NOTHING
