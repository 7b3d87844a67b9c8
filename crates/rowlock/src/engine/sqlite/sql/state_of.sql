-- purpose: where a job stands
SELECT state FROM rowlock_job WHERE id = ?1
UNION ALL
SELECT state FROM rowlock_history WHERE id = ?1
LIMIT 1
