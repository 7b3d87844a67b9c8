-- purpose: the kinds of a queue that was switched are not plain any more
-- differs: writing to the queues keeps note_plain away, which would not see what isn't committed yet; switches don't
-- wait for each other
-- An older snapshot than the switch's lock on the queues would not see which kinds became plain, or came to this queue,
-- before it.
CREATE FUNCTION rowlock.queue_switched() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a queue is switched at READ COMMITTED: BEGIN ISOLATION LEVEL READ COMMITTED, then try again';
    END IF;
    UPDATE rowlock.kind SET plain = false WHERE queue = NEW.queue AND plain;
    RETURN NULL;
END $$
