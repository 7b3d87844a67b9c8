-- operators: safe while workers run
-- purpose: routes of queues, and a number that tells this store from others

-- Room for a second version of every row, which is wider by what a claim writes: only then is each claim a HOT
-- update. No two entries of the index are alike, so nothing is gained by looking for such.
DO $$ BEGIN
    FOR s IN 0..3 LOOP
        EXECUTE format('ALTER TABLE rowlock.job_%s SET (fillfactor = 45)', s);
        EXECUTE format('ALTER INDEX rowlock.job_%s_ready SET (deduplicate_items = off)', s);
    END LOOP;
END $$;

-- A job goes by its kind's route; if that is direct, by its queue's. This is the only table of the workers' that
-- they wait for, and the last: two might be waited for crosswise.
ALTER TABLE rowlock.queue ADD COLUMN route text NOT NULL DEFAULT 'direct';

-- At most one row: the store's own number, which jobs of different stores are told apart by. It is written
-- when it is first asked for, so that the rows of a store can be copied into a new one.
CREATE TABLE rowlock.store (
    one boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    id  bigint NOT NULL
);

-- They take a route now. Whoever names none, as older workers do, means those that go by none.
-- What those call keeps its older forms beside the newer: a call under way goes on.
DROP FUNCTION IF EXISTS rowlock.claim, rowlock.claim_suspect;
