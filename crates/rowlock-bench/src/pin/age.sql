-- purpose: how many transactions have come since the one that is kept open
-- Who has written counts from itself: its age is always 0.
SELECT greatest(age(backend_xmin)::bigint,
                pg_snapshot_xmax(pg_current_snapshot())::text::bigint - backend_xid::text::bigint)
FROM pg_stat_activity WHERE pid = pg_backend_pid()
