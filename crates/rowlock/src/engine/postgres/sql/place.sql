-- purpose: where in its lane a pending job waits: what was due a while ago goes before what is due now
CREATE FUNCTION rowlock.place(due timestamptz, now timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN due <= now - interval '1 s' THEN due ELSE greatest(due, now) END $$
