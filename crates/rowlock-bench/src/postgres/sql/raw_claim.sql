-- purpose: the least that a claim has to write, beginning where the last one ended
-- $1 token $2 how many $3 and $4 where to begin
UPDATE bench.raw SET token = $1, worker = 1, attempt = attempt + 1, started_at = now()
WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM bench.raw
    WHERE queue = 'default' AND kind = 'noop' AND priority = 0 AND ready_at <= now() AND token IS NULL
      AND (ready_at, id) > ($3, $4)
    ORDER BY ready_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)) AND token IS NULL
RETURNING ctid, id, ready_at, kind, payload::text, attempt, max_attempts, scheduled_at, unique_key, backoff::text
