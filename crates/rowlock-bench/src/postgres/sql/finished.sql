INSERT INTO bench.history
SELECT n, bench.slot(day, now()), day, now(), now(), now(), now(), 1, 20, 0, false, 'completed', 'default', 'noop', NULL,
       NULL, NULL, NULL, NULL, '{"to":"ada@example.com","subject":"hello"}'
FROM generate_series(1, 10000000) AS n, LATERAL (SELECT bench.expiry(now(), 86400000) AS day) AS kept;
INSERT INTO bench.tally SELECT bench.expiry(now(), 86400000), 'default', 'completed', 10000000;
SELECT setval('bench.job_id', 10000000);
VACUUM ANALYZE bench.history;
VACUUM ANALYZE bench.tally
