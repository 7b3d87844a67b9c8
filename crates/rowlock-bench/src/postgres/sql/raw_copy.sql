COPY bench.raw (id, ready_at, scheduled_at, created_at, attempt, max_attempts, priority, until_start, cancel_requested,
                suspect, held, queue, kind, payload) FROM STDIN
