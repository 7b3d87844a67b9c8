-- purpose: dead rows of our own tables, as the server counts them; segments and pieces of the history as one each
SELECT CASE WHEN relname ~ '^job_[0-9]$' THEN 'segments' WHEN relname ~ '^history_' THEN 'history' ELSE relname::text END AS part,
       sum(n_dead_tup)::bigint
FROM pg_stat_user_tables WHERE schemaname = 'rowlock' AND relname NOT IN ('job', 'history', 'migration', 'schema_part')
GROUP BY part ORDER BY part
