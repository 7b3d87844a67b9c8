-- purpose: how many transactions this session keeps from being forgotten
SELECT age(coalesce(backend_xmin, backend_xid))::bigint FROM pg_stat_activity WHERE pid = pg_backend_pid()
