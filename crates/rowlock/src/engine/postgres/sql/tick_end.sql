-- purpose: note how a tick went, and when the next is due; by hand ($3 NULL) the leader's plan stays
-- $4 whether it went well $5 what went wrong $6 where it goes on
UPDATE rowlock.post SET
    cursor = CASE WHEN $3 IS NULL THEN cursor ELSE $6 END,
    due_at = CASE WHEN $3 IS NULL THEN due_at ELSE $7 END,
    last_success = CASE WHEN $4 AND $6 IS NULL THEN rowlock.now() ELSE last_success END,
    last_took_ms = CASE WHEN $4 AND $6 IS NULL THEN $8 ELSE last_took_ms END,
    last_found = CASE WHEN $4 AND $6 IS NULL THEN $9 ELSE last_found END,
    last_enqueued = CASE WHEN $4 AND $6 IS NULL THEN $10 ELSE last_enqueued END,
    lost = lost + $11,
    ticks = ticks + CASE WHEN $4 AND $6 IS NULL THEN 1 ELSE 0 END,
    error = CASE WHEN NOT $4 THEN $5 WHEN $6 IS NULL THEN NULL ELSE error END
WHERE duty = 'pair' AND name = $1 AND shard = $2 AND ($3 IS NULL OR token = $3)
