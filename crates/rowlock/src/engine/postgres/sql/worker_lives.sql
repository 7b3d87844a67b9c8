-- purpose: keep a worker from being given up until this transaction ends; whether it still lived
-- A claim that commits after its worker was buried would leave rows that nobody gives back.
CREATE FUNCTION rowlock.worker_lives(worker bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('rowlock.worker'), (worker % 2147483647)::integer);
    RETURN EXISTS (SELECT 1 FROM rowlock.worker AS w WHERE w.number = worker_lives.worker);
END $$
