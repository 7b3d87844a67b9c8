-- operators: safe while workers run
-- purpose: identity, locks and keys that hold after a failover, beside other roles and under a publication
-- What workers and applications of schema 3 to 7 call stays.

-- The store's own number, before its row is written. Idempotency keys are made of it, so a standby must have it before the
-- first claim; as a sequence, because one isn't copied with the rows, and the rows of a store can be copied into a new one.
CREATE SEQUENCE rowlock.store_seed;
SELECT setval('rowlock.store_seed', 1 + ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint);

-- Until when a worker sleeps that hears notifications, and when a listener last heard one, in milliseconds since 1970. An
-- enqueue notifies when the first is to come and the second long enough ago; it writes neither. Beside them the sign of
-- older workers stays, which an enqueue takes down, whether or not it is committed.
CREATE SEQUENCE rowlock.asleep MINVALUE 0 START 0;
CREATE SEQUENCE rowlock.heard MINVALUE 0 START 0;
SELECT setval('rowlock.asleep', 0), setval('rowlock.heard', 0);

-- Tables that this step changes. Jobs on their way want them in any order, so that two would wait crosswise: all are
-- locked at once or none, and between two tries everything goes on. A transaction that has enqueued and stays open for
-- longer than ten seconds makes the migration fail; then try again.
DO $$ BEGIN
    FOR attempt IN 1 .. 100 LOOP
        BEGIN
            SET LOCAL lock_timeout = '50ms';
            LOCK TABLE rowlock.lane, rowlock.tally, rowlock.switched, rowlock.worker IN ACCESS EXCLUSIVE MODE;
            -- Their triggers are made anew below. A switch writes to them first and to `switched` then.
            LOCK TABLE rowlock.kind, rowlock.queue, rowlock.budget IN SHARE ROW EXCLUSIVE MODE;
            EXIT;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempt = 100 THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.05);
        END;
    END LOOP;
    SET LOCAL lock_timeout = '10s';
END $$;

-- What is appended and added up again has no key, and rows may be alike. Under a publication (FOR ALL TABLES, as tools
-- for change data capture and upgrades by replication make one) an UPDATE or DELETE without a replica identity is an
-- error. The whole row is one that costs nothing unless the table is decoded. It is a change of the catalogue alone.
ALTER TABLE rowlock.lane REPLICA IDENTITY FULL;
ALTER TABLE rowlock.tally REPLICA IDENTITY FULL;
ALTER TABLE rowlock.switched REPLICA IDENTITY FULL;

-- Locks are those of rows and tables from here on, which a role without rights on them can't take. A claim that began
-- under the older functions isn't waited for by the newer ones: should its worker be given up in that very moment, what
-- it took is found by the search for rows of workers that are gone.

-- A worker's number is random (sql/join.sql). Programs of schema 7 still look at the sequence: it is at its end, so that
-- none of them takes it for one that lags behind, and nothing gets a number from it.
SELECT setval(pg_get_serial_sequence('rowlock.worker', 'number'), 9223372036854775807);

-- Who is dead is judged by a heartbeat that stands still, not by the server's clock. What programs of schema 7 ask for is
-- noted here first (sql/expire.sql).
ALTER TABLE rowlock.worker ADD COLUMN doubted_seen timestamptz, ADD COLUMN doubted_at timestamptz;
DROP FUNCTION IF EXISTS rowlock.expire(bigint, timestamptz, bigint, bigint, bigint, text, integer);
-- One refused row keeps no other from going back (sql/return_held.sql).
DROP FUNCTION IF EXISTS rowlock.give_back(bigint, bigint[], timestamptz);
DELETE FROM rowlock.schema_part WHERE thing = 'function give_back';
