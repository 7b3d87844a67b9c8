-- purpose: the least that is written of a job with a key that ends and is kept; $1 places $2 token
WITH gone AS (
    DELETE FROM bench.raw WHERE ctid = ANY ($1) AND token = $2 RETURNING *
), freed AS (
    DELETE FROM bench.raw_key AS k USING gone WHERE k.kind = gone.kind AND k.unique_key = gone.unique_key
)
INSERT INTO bench.raw_history
SELECT id, 0, current_date, scheduled_at, created_at, started_at, now(), attempt, max_attempts, priority, until_start,
       'completed', queue, kind, unique_key, tags, trace_context, backoff, errors, payload
FROM gone
