-- purpose: the textbook's completeJob
UPDATE jobs
SET status = 'completed', completed_at = datetime('now'), updated_at = datetime('now'),
    locked_by = NULL, locked_at = NULL
WHERE id = ?1
