-- purpose: what is dead in the tables of this database, about how many bytes that is, and how many rows have died since the server counts
-- Pages as the catalogue has them: asking for the files would wait for whoever holds the lock of a table.
SELECT coalesce(sum(s.n_dead_tup), 0)::bigint,
       coalesce(sum(c.relpages::numeric * current_setting('block_size')::integer * s.n_dead_tup
                    / greatest(s.n_live_tup + s.n_dead_tup, 1)), 0)::bigint,
       coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::bigint,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid
