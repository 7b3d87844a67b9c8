-- purpose: ?1 finished jobs behind, as ?2 and 200 milliseconds before it left them
WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?1)
INSERT INTO rowlock_history
    (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at, created_at, started_at,
     finished_at, expires_at, unique_until, tags, errors, payload)
SELECT id, ?3, 'default', 0, 'completed', 1, 5, ?2 - 200, ?2 - 200, ?2 - 100,
       ?2, ?2 + 86400000, 'finished', '[]', '[]', ?4
FROM n
