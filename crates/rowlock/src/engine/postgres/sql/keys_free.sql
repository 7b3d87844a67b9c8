-- purpose: free unique keys whose jobs are still not live; $1 the jobs' numbers
-- A job and its key come in one commit, so a snapshot that has the key and no job has an orphan. Looked at again here: a
-- job may have come back since it was missed, as from a backup.
DELETE FROM rowlock.key AS k
WHERE k.id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM rowlock.job WHERE job.id = k.id)
