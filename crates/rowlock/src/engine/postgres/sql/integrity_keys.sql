-- purpose: unique keys that are not held by the live job that should, at most ten
SELECT job.kind, job.unique_key, job.id FROM rowlock.job
WHERE job.unique_key IS NOT NULL AND NOT job.until_start AND NOT EXISTS (
    SELECT 1 FROM rowlock.key AS k WHERE k.kind = job.kind AND k.unique_key = job.unique_key AND k.id = job.id)
LIMIT 10
