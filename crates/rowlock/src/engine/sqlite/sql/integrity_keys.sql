-- purpose: unique keys that more than one live job holds, at most ten
SELECT kind, unique_key, count(*) FROM rowlock_job
WHERE key_held = 1 GROUP BY kind, unique_key HAVING count(*) > 1 LIMIT 10
