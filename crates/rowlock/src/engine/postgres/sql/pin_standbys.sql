-- purpose: the standbys whose feedback keeps old rows for their own readers
SELECT pid, application_name, usename::text, state, age(backend_xmin)::bigint
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
