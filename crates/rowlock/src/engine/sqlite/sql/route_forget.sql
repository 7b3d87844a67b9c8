-- purpose: remove the row of route ?1, unless it holds something
DELETE FROM rowlock_worker
WHERE id = ?1 AND id GLOB 'drain:*'
  AND NOT EXISTS (SELECT 1 FROM rowlock_job WHERE state = 'processing' AND locked_by = ?1)
