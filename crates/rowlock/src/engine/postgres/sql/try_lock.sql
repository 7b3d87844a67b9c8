-- purpose: lock a table or view of ours until this transaction ends, without a wait; whether that was possible
-- Unlike an advisory lock, only a role that may change the table can take it. It needs no transaction number, and works
-- in a transaction that only reads.
CREATE FUNCTION rowlock.try_lock(thing regclass, mode text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('LOCK TABLE ONLY %s IN %s MODE NOWAIT', thing, mode);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$
