-- purpose: wake every worker that sleeps once this transaction is committed
-- Older workers know only the sign that an enqueue takes down; the newer sign runs out by itself.
CREATE FUNCTION rowlock.notify() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_sequence_last_value('rowlock.bell') = 1 THEN
        PERFORM setval('rowlock.bell', 0);
    END IF;
    PERFORM pg_notify('rowlock.ready', '');
END $$
