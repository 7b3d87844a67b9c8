-- purpose: a claimed job ends and leaves nothing: its retention is zero, or a foreign system has it
-- moves: send processing -> none
-- ?1 id ?2 token
DELETE FROM main.rowlock_job WHERE id = ?1 AND token = ?2 AND state = 'processing'
