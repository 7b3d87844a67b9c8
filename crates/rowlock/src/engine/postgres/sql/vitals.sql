-- purpose: numbers for a scrape: catalogue and statistics only, no table of jobs is read
SELECT greatest((SELECT max(greatest(age(backend_xmin), age(backend_xid))) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                   AND backend_type IS DISTINCT FROM 'autovacuum worker'),
                (SELECT max(age(transaction)) FROM pg_prepared_xacts WHERE database = current_database()),
                (SELECT max(greatest(age(xmin), age(catalog_xmin))) FROM pg_replication_slots),
                (SELECT max(age(backend_xmin)) FROM pg_stat_replication), 0)::bigint,
       coalesce(extract(epoch FROM clock_timestamp() - least(
           (SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
            AND backend_type IS DISTINCT FROM 'autovacuum worker'),
           (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database()))) * 1000, 0)::bigint,
       (SELECT last_value / 8 FROM rowlock.ring),
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0')::bigint,
       (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables),
       ARRAY (SELECT pg_relation_size(format('rowlock.job_%s', s)::regclass) FROM generate_series(0, 3) AS s ORDER BY s)
