-- purpose: the live job that has the same key as ended job ?1
SELECT job.id FROM rowlock_job AS job, rowlock_history AS ended
WHERE ended.id = ?1 AND job.kind = ended.kind AND job.unique_key = ended.unique_key AND job.key_held = 1
