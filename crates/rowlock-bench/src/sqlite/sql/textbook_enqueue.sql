-- purpose: the textbook's enqueue
-- differs: the time is written as datetime() writes it, or no job would be due before midnight
INSERT INTO jobs (id, type, payload, priority, max_attempts, scheduled_at)
VALUES (?1, ?2, ?3, 0, 5, datetime('now'))
