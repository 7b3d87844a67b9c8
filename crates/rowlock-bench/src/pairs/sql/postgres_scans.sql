SELECT (coalesce(idx_scan, 0) + coalesce(seq_scan, 0))::bigint FROM pg_stat_user_tables
WHERE relid = 'bench.databases'::regclass
