-- purpose: unique keys that are held by a job that isn't live, or not held by one that should, at most ten
SELECT k.kind, k.unique_key, k.id, 'is held for job %, which is not live' FROM rowlock.key AS k
WHERE NOT EXISTS (SELECT 1 FROM rowlock.job WHERE job.id = k.id)
UNION ALL
SELECT job.kind, job.unique_key, job.id, 'is not held for job %, which is live' FROM rowlock.job
WHERE job.unique_key IS NOT NULL AND NOT job.until_start AND NOT EXISTS (
    SELECT 1 FROM rowlock.key AS k WHERE k.kind = job.kind AND k.unique_key = job.unique_key AND k.id = job.id)
LIMIT 10
