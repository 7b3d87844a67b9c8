-- purpose: ended jobs in a state, by falling id; the history has no index on the state, so only its end is read
-- $1 state $2 how far back $3 limit
SELECT id, kind, queue, priority, payload::text, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors::text, NULL::text
FROM rowlock.history
WHERE state = $1
  AND id > coalesce((SELECT id FROM rowlock.history ORDER BY id DESC LIMIT 1 OFFSET $2), 0)
ORDER BY id DESC LIMIT $3
