-- purpose: every kind that has a row
SELECT kind, queue, priority, max_attempts, backoff, timeout_ms, key_fields, unique_until,
       keep_completed_ms, keep_failed_ms, keep_cancelled_ms
FROM rowlock_kind ORDER BY kind
