-- purpose: how many bytes of the log each replication slot keeps on disk
SELECT slot_name::text,
       greatest((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - restart_lsn)::bigint, 0)
FROM pg_replication_slots WHERE restart_lsn IS NOT NULL
