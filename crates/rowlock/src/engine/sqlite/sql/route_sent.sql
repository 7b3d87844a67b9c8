-- purpose: a page of what a route holds, by rising id
-- ?1 holder ?2 after ?3 limit
SELECT id, token, started_at, attempt, max_attempts,
       coalesce(backoff, (SELECT k.backoff FROM rowlock_kind AS k WHERE k.kind = rowlock_job.kind)),
       suspect
FROM rowlock_job WHERE id IN (
    SELECT id FROM rowlock_job INDEXED BY rowlock_job_running
    WHERE state = 'processing' AND locked_by = ?1 AND id > ?2
    ORDER BY id LIMIT ?3)
ORDER BY id
