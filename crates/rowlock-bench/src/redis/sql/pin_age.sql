-- purpose: how many transactions the snapshot of this session is behind
SELECT age(backend_xmin)::bigint FROM pg_stat_activity WHERE pid = pg_backend_pid()
