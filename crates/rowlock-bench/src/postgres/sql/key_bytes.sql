-- purpose: bytes of the keys and of what was set aside, with their indexes
SELECT pg_total_relation_size('bench.key'), pg_total_relation_size('bench.aside')
