-- purpose: cancel the statement of a session, if its transaction is still the one that was judged
SELECT pg_cancel_backend(a.pid) FROM pg_stat_activity AS a
WHERE a.pid = $1 AND (extract(epoch FROM coalesce(a.xact_start, a.backend_start)) * 1000000)::bigint = $2
