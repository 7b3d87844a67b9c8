-- purpose: how often somebody has read a large table from its beginning to its end
SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = $1 AND n_live_tup >= $2
