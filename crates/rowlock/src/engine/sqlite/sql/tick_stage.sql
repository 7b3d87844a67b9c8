-- purpose: store jobs of a tick, unless their keys are taken
-- moves: stage none -> pending
-- differs: {rows} stands for as many rows as are stored together: one statement costs as much as a row
-- ?1 kind ?2 queue ?3 priority ?4 max_attempts ?5 now ?6 unique_until; of each row scheduled_at, unique_key, payload
INSERT INTO main.rowlock_job
    (kind, queue, priority, state, max_attempts, scheduled_at, created_at,
     unique_key, unique_until, key_held, payload)
VALUES {rows}
ON CONFLICT (kind, unique_key) WHERE key_held = 1 DO NOTHING
