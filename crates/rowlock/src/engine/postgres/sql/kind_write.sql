-- purpose: write kinds as declared, all or none; their switches and routes stay as they are
-- $1 [{kind, queue, ...}, ...] $2 whether rows that are there already are changed
INSERT INTO rowlock.kind
    (kind, queue, priority, max_attempts, backoff, timeout_ms, key_fields, unique_until,
     keep_completed_ms, keep_failed_ms, keep_cancelled_ms)
SELECT * FROM json_to_recordset($1::text::json) AS declared (
    kind text, queue text, priority smallint, max_attempts integer, backoff json, timeout_ms bigint, key_fields text[],
    unique_until text, keep_completed_ms bigint, keep_failed_ms bigint, keep_cancelled_ms bigint)
ORDER BY kind
ON CONFLICT (kind) DO UPDATE SET
    queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
    backoff = excluded.backoff, timeout_ms = excluded.timeout_ms, key_fields = excluded.key_fields,
    unique_until = excluded.unique_until, keep_completed_ms = excluded.keep_completed_ms,
    keep_failed_ms = excluded.keep_failed_ms, keep_cancelled_ms = excluded.keep_cancelled_ms
WHERE $2
