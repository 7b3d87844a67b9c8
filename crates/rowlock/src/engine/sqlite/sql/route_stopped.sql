-- purpose: what route ?1 holds of the kinds ?2 and the queues ?3, except for what is to be cancelled
SELECT id, token FROM rowlock_job
WHERE state = 'processing' AND locked_by = ?1 AND NOT cancel_requested
  AND (kind IN (SELECT value FROM json_each(?2)) OR queue IN (SELECT value FROM json_each(?3)))
ORDER BY id
