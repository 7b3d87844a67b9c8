-- purpose: a piece of the history that lacks a job of this number: its own, the one for what is kept long, or none
-- Numbers stand for two jobs only after a copy without sequences.
CREATE FUNCTION rowlock.spare_slot(job_id bigint, own smallint) RETURNS smallint LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM rowlock.history AS h WHERE h.id = job_id AND h.slot = own) THEN
        RETURN own;
    ELSIF NOT EXISTS (SELECT 1 FROM rowlock.history AS h WHERE h.id = job_id AND h.slot = 40) THEN
        RETURN 40;
    END IF;
    RETURN NULL;
END $$
