WITH RECURSIVE number (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < ?1)
INSERT INTO databases SELECT id, 'database ' || id, 'pending' FROM number
