-- purpose: a tick went wrong; by hand it moves nothing on
-- ?1 pair ?2 shard ?3 token or NULL ?4 due_at ?5 what went wrong ?6 cursor
UPDATE rowlock_post
SET error = ?5,
    cursor = CASE WHEN ?3 IS NULL THEN cursor ELSE ?6 END,
    due_at = CASE WHEN ?3 IS NULL THEN due_at ELSE ?4 END
WHERE duty = 'pair' AND name = ?1 AND shard = ?2 AND (?3 IS NULL OR token = ?3)
