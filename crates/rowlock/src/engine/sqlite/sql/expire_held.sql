-- purpose: what a dead worker held
SELECT id, token, attempt, max_attempts, cancel_requested,
       coalesce(backoff, (SELECT k.backoff FROM rowlock_kind AS k WHERE k.kind = rowlock_job.kind)),
       json_extract(errors, '$[#-1].message')
FROM rowlock_job WHERE state = 'processing' AND locked_by = ?1
