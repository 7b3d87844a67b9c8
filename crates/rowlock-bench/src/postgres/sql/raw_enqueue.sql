-- purpose: the least that is written of a job that is staged alone; $1 payload
INSERT INTO bench.raw (id, ready_at, scheduled_at, created_at, attempt, max_attempts, priority, until_start, cancel_requested,
                       suspect, held, queue, kind, payload)
VALUES (nextval('bench.raw_id'), now(), now(), now(), 0, 20, 0, false, false, false, false, 'default', 'noop', $1::text::json)
