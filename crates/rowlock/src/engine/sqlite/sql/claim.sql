-- purpose: lease the due jobs of one lane, oldest first
-- moves: claim pending -> processing
-- differs: SQLite has one writer, so no row locks are needed
-- ?1 queue ?2 kind ?3 suspect ?4 priority ?5 now ?6 limit ?7 worker ?8 token
UPDATE rowlock_job
SET state = 'processing', attempt = attempt + 1, locked_by = ?7, token = ?8, started_at = ?5,
    key_held = (key_held AND unique_until <> 'start')
WHERE id IN (
    SELECT id FROM rowlock_job INDEXED BY rowlock_job_ready
    WHERE state = 'pending' AND queue = ?1 AND kind = ?2 AND suspect = ?3 AND priority = ?4
      AND scheduled_at <= ?5
    ORDER BY scheduled_at, id LIMIT ?6)
RETURNING id, token, kind, queue, priority, payload, attempt, max_attempts, scheduled_at,
    unique_key, tags, trace_context, suspect,
    coalesce(backoff, (SELECT k.backoff FROM rowlock_kind AS k WHERE k.kind = ?2)),
    (SELECT k.timeout_ms FROM rowlock_kind AS k WHERE k.kind = ?2), created_at, (SELECT s.id FROM rowlock_store AS s)
