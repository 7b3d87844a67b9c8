INSERT INTO bench.history
SELECT n, bench.slot(day, now()), day, now(), now(), now(), now(), 1, 20, 0, false,
       CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'completed' END, 'default', 'noop', NULL,
       NULL, NULL, NULL, NULL, '{"to":"ada@example.com","subject":"hello"}'
FROM generate_series(1, 5000000) AS n, LATERAL (SELECT bench.expiry(now(), 86400000) AS day) AS kept;
INSERT INTO bench.tally SELECT bench.expiry(now(), 86400000), 'default', 'completed', 5000000;
INSERT INTO bench.job_0 (id, ready_at, scheduled_at, created_at, attempt, max_attempts, priority, until_start,
                         cancel_requested, suspect, held, queue, kind, payload)
SELECT 5000000 + n, now(), now(), now(), 0, 20, 0, false, false, false, false, 'default', 'noop',
       '{"to":"ada@example.com","subject":"hello"}'
FROM generate_series(1, 1000000) AS n;
INSERT INTO bench.lane VALUES ('default', 'noop', 0);
SELECT setval('bench.job_id', 5000000 + 1000000);
VACUUM ANALYZE bench.history;
VACUUM ANALYZE bench.job_0;
VACUUM ANALYZE bench.tally
