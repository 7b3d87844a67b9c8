-- purpose: a notification was heard (LISTEN): for 10 ms no enqueue has to notify again, since every listener looks again
-- A time that is ahead is of a clock that was set back since.
SELECT setval('rowlock.heard', (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE abs(coalesce(pg_sequence_last_value('rowlock.heard'), 0) - date_part('epoch', clock_timestamp()) * 1000) > 10
