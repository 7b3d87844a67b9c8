-- purpose: what is dead: of the application's table, of our own, of the catalogue; and bytes of the log that a slot keeps
SELECT pg_stat_get_dead_tuples('public.orders'::regclass),
       (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = 'bench'),
       pg_stat_get_dead_tuples('pg_attribute'::regclass),
       (SELECT coalesce(max(pg_current_wal_lsn() - restart_lsn), 0)::bigint FROM pg_replication_slots)
