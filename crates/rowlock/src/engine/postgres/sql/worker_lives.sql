-- purpose: keep a worker from being given up until this transaction ends; whether it still lived
-- A claim that commits after its worker was given up would leave rows that no heartbeat answers for. A claim calls this
-- last, and only when it took something: the lock on the row needs a transaction number, which it has by then.
CREATE FUNCTION rowlock.worker_lives(worker bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM rowlock.worker AS w WHERE w.number = worker_lives.worker FOR KEY SHARE;
    RETURN FOUND;
END $$
