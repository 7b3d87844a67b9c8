-- purpose: every kind that has a row
SELECT kind, queue, priority, max_attempts, backoff::text, timeout_ms, key_fields, unique_until,
       keep_completed_ms, keep_failed_ms, keep_cancelled_ms
FROM rowlock.kind ORDER BY kind
