INSERT INTO bench.job_0 (id, ready_at, scheduled_at, created_at, attempt, max_attempts, priority, until_start,
                         cancel_requested, suspect, held, queue, kind, payload)
SELECT nextval('bench.job_id'), now(), now(), now(), 0, 20, 0, false, false, false, false, 'mail', 'send_email',
       '{"to":"ada@example.com","subject":"hello"}'
FROM generate_series(1, 100000);
INSERT INTO bench.lane VALUES ('mail', 'send_email', 0);
CREATE TABLE bench.thing (id bigint PRIMARY KEY);
VACUUM ANALYZE bench.job_0
