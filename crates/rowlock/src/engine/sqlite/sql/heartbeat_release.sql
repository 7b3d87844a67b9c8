-- purpose: give back rows whose claim's answer never reached their own worker ?1, who holds tokens ?2
-- moves: release processing -> pending
UPDATE rowlock_job
SET state = 'pending', attempt = attempt - 1, locked_by = NULL, token = NULL
WHERE state = 'processing' AND locked_by = ?1 AND NOT cancel_requested
  AND token NOT IN (SELECT value FROM json_each(?2))
