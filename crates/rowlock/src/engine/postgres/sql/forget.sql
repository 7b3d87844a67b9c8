-- purpose: take one ended job out of the history and out of the count; whether it was there
-- moves: prune completed -> none
-- moves: prune failed -> none
-- moves: prune cancelled -> none
CREATE FUNCTION rowlock.forget(job_id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (DELETE FROM rowlock.history WHERE id = job_id RETURNING expires_on, queue, state)
    INSERT INTO rowlock.tally SELECT expires_on, queue, state, -1 FROM gone;
    RETURN FOUND;
END $$
