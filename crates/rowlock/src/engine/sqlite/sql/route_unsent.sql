-- purpose: how many jobs of a lane are due, counted up to a limit
-- ?1 queue ?2 kind ?3 suspect ?4 priority ?5 now ?6 limit
SELECT count(*) FROM (
    SELECT id FROM rowlock_job INDEXED BY rowlock_job_ready
    WHERE state = 'pending' AND queue = ?1 AND kind = ?2 AND suspect = ?3 AND priority = ?4
      AND scheduled_at <= ?5
    LIMIT ?6)
