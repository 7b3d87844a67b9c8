-- purpose: what route ?1 holds that somebody wants cancelled
SELECT id, token FROM rowlock_job INDEXED BY rowlock_job_cancelling
WHERE state = 'processing' AND cancel_requested = 1 AND locked_by = ?1
ORDER BY id
