-- purpose: a notification was heard (LISTEN): for 10 ms no enqueue has to notify again, since every listener looks again
SELECT setval('rowlock.heard', (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE to_timestamp(pg_sequence_last_value('rowlock.heard')::float8 / 1000) < clock_timestamp() - interval '10 ms'
