-- purpose: ?1 pending jobs of kind ?3 in queue ?4, due since ?2
WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?1)
INSERT INTO rowlock_job (kind, queue, priority, state, max_attempts, scheduled_at, created_at, unique_until, payload)
SELECT ?3, ?4, 0, 'pending', 5, ?2, ?2, 'finished', ?5 FROM n
