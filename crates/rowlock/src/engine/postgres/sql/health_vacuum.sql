-- purpose: tables of ours that nobody cleans up: autovacuum is off for them, or far behind its own threshold
-- A segment is emptied as a whole, so what is dead in it counts for nothing.
SELECT c.relname::text, s.n_dead_tup, off.is, (extract(epoch FROM rowlock.now() - cleaned.at) * 1000)::bigint
FROM pg_class AS c JOIN pg_stat_user_tables AS s ON s.relid = c.oid
CROSS JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM pg_options_to_table(c.reloptions)
                                   WHERE option_name = 'autovacuum_enabled' AND NOT option_value::boolean) AS is) AS off
CROSS JOIN LATERAL (SELECT greatest(s.last_vacuum, s.last_autovacuum) AS at) AS cleaned
WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind = 'r'
  AND (off.is OR (c.relname !~ '^job_[0-9]$' AND s.n_dead_tup > 50000
       AND s.n_dead_tup > 4 * (current_setting('autovacuum_vacuum_threshold')::bigint
                               + current_setting('autovacuum_vacuum_scale_factor')::float8 * greatest(c.reltuples, 0))
       AND coalesce(rowlock.now() - cleaned.at > interval '10 min', true)))
ORDER BY c.relname
