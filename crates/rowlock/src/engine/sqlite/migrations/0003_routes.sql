-- operators: safe while workers run
-- purpose: routes of queues, and a number that tells this store from others

-- A job goes by its kind's route; if that is direct, by its queue's.
ALTER TABLE rowlock_queue ADD COLUMN route TEXT NOT NULL DEFAULT 'direct';

-- One row: the store's own number, which jobs of different stores are told apart by.
CREATE TABLE rowlock_store (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id  INTEGER NOT NULL
);
INSERT INTO rowlock_store (one, id) VALUES (1, abs(random() % 4611686018427387904));
