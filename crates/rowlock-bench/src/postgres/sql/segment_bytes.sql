-- purpose: bytes of the four segments, with their indexes
SELECT sum(pg_total_relation_size(format('bench.job_%s', s)::regclass))::bigint FROM generate_series(0, 3) AS s
