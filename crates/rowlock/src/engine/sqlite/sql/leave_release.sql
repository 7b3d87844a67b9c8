-- purpose: a worker that goes gives back what it holds
-- moves: release processing -> pending
UPDATE rowlock_job
SET state = 'pending', attempt = attempt - 1, locked_by = NULL, token = NULL
WHERE state = 'processing' AND locked_by = ?1 AND NOT cancel_requested
