-- purpose: store one job of a tick, unless its key is taken
-- moves: stage none -> pending
-- ?1 kind ?2 queue ?3 priority ?4 max_attempts ?5 now ?6 unique_until ?7 scheduled_at ?8 unique_key ?9 payload
INSERT INTO main.rowlock_job
    (kind, queue, priority, state, max_attempts, scheduled_at, created_at,
     unique_key, unique_until, key_held, payload)
VALUES (?1, ?2, ?3, 'pending', ?4, ?7, ?5, ?8, ?6, 1, ?9)
ON CONFLICT (kind, unique_key) WHERE key_held = 1 DO NOTHING
