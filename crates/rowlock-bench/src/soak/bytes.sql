-- purpose: bytes of the segments, of keys and what was set aside, of the history, and of the catalogue
SELECT (SELECT sum(pg_total_relation_size(format('bench.job_%s', s)::regclass))::bigint FROM generate_series(0, 3) AS s),
       pg_total_relation_size('bench.key') + pg_total_relation_size('bench.aside'),
       (SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits WHERE inhparent = 'bench.history'::regclass),
       (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r')
