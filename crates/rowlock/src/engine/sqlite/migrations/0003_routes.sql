-- operators: safe while workers run
-- purpose: routes of queues, and a number that tells this store from others
-- Workers of an older version don't know routes: until they are replaced they claim what goes by one.

-- A job goes by its kind's route; if that is direct, by its queue's.
ALTER TABLE rowlock_queue ADD COLUMN route TEXT NOT NULL DEFAULT 'direct';

-- Every claim asks for the routes: it reads only the kinds that have one.
CREATE INDEX rowlock_kind_routed ON rowlock_kind (kind, route) WHERE route <> 'direct';

-- What a route holds is a lot, and its drains ask often which of it somebody wants cancelled.
CREATE INDEX rowlock_job_cancelling ON rowlock_job (locked_by, id, token)
    WHERE state = 'processing' AND cancel_requested = 1;

-- One row: the store's own number, which jobs of different stores are told apart by.
CREATE TABLE rowlock_store (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id  INTEGER NOT NULL
);
INSERT INTO rowlock_store (one, id) VALUES (1, 1 + abs(random() % 4611686018427387904));
