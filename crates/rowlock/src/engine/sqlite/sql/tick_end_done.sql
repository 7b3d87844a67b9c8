-- purpose: a tick got through; by hand it moves nothing on
-- ?1 pair ?2 shard ?3 token or NULL ?4 due_at ?5 now ?6 took ms ?7 found ?8 enqueued ?9 lost
UPDATE rowlock_post
SET last_success = ?5, last_took_ms = ?6, last_found = ?7, last_enqueued = ?8, lost = lost + ?9,
    ticks = ticks + 1, error = NULL,
    cursor = CASE WHEN ?3 IS NULL THEN cursor END,
    due_at = CASE WHEN ?3 IS NULL THEN due_at ELSE ?4 END
WHERE duty = 'pair' AND name = ?1 AND shard = ?2 AND (?3 IS NULL OR token = ?3)
