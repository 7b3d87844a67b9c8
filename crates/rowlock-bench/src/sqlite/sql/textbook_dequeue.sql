-- purpose: the textbook's dequeue
UPDATE jobs
SET status = 'processing', locked_by = ?1, locked_at = datetime('now'), updated_at = datetime('now')
WHERE id = (
    SELECT id FROM jobs
    WHERE status = 'pending' AND scheduled_at <= datetime('now')
    ORDER BY priority DESC, scheduled_at ASC
    LIMIT 1)
RETURNING *
