-- purpose: unique keys that are held for a job that isn't live, the oldest first; $1 at most so many
SELECT k.kind, k.unique_key, k.id FROM rowlock.key AS k
WHERE NOT EXISTS (SELECT 1 FROM rowlock.job WHERE job.id = k.id)
ORDER BY k.id LIMIT $1
