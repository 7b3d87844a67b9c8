-- purpose: every job as a checker reads it, live and ended, by rising id
-- ?1 after ?2 now ?3 limit
SELECT id, 1 AS live, state, attempt, max_attempts, token, locked_by, scheduled_at <= ?2 AS due
FROM rowlock_job WHERE id > ?1
UNION ALL
SELECT id, 0, state, attempt, max_attempts, NULL, NULL, 0
FROM rowlock_history WHERE id > ?1
ORDER BY id LIMIT ?3
