-- purpose: the next jobs of the textbook's queue, locked; $1 how many
SELECT id, payload::text FROM bench.textbook
WHERE status = 'pending' AND run_at <= now()
ORDER BY run_at LIMIT $1 FOR UPDATE SKIP LOCKED
