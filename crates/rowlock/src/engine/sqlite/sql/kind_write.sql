-- purpose: write a kind as declared; its switch and route stay as they are
INSERT INTO rowlock_kind
    (kind, queue, priority, max_attempts, backoff, timeout_ms, key_fields, unique_until,
     keep_completed_ms, keep_failed_ms, keep_cancelled_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (kind) DO UPDATE SET
    queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
    backoff = excluded.backoff, timeout_ms = excluded.timeout_ms, key_fields = excluded.key_fields,
    unique_until = excluded.unique_until, keep_completed_ms = excluded.keep_completed_ms,
    keep_failed_ms = excluded.keep_failed_ms, keep_cancelled_ms = excluded.keep_cancelled_ms
