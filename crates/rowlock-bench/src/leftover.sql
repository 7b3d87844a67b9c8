-- purpose: what runs have left on the server that are no longer connected, in the order in which it can go
SELECT what, name, place FROM (
    SELECT 1 AS turn, 'prepared transaction' AS what, gid AS name, database::text AS place FROM pg_prepared_xacts
    UNION ALL
    SELECT 2, 'replication slot', slot_name::text, coalesce(database::text, current_database())
    FROM pg_replication_slots WHERE NOT active
    UNION ALL
    SELECT 3, 'schema', nspname::text, current_database()::text FROM pg_namespace
    UNION ALL
    SELECT 4, 'database', datname::text, datname::text FROM pg_database
) AS made
CROSS JOIN LATERAL regexp_match(name, '^(rowlock_bench_t[0-9a-f]+_[0-9a-f]+)_[0-9]+(_pinned|_free)?$') AS run
WHERE run IS NOT NULL AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = run[1])
ORDER BY turn, name
