-- ?1 kind ?2 now ?3 after this id ?4 at most
INSERT INTO plain (kind, queue, priority, state, max_attempts, scheduled_at, created_at, unique_key, unique_until, key_held, payload)
SELECT ?1, 'default', 0, 'pending', 5, ?2, ?2, '[' || id || ']', 'finished', 1, json_object('id', id)
FROM databases WHERE state = 'pending' AND id > ?3 ORDER BY id LIMIT ?4
