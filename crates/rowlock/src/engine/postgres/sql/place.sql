-- purpose: where in its lane a pending job waits
-- What has just become due goes before what is due now, and ahead of every bound. What was due a while
-- ago keeps its place; claims are told (rowlock.unsorted) and begin anew.
-- Stable, as its body is: only then is it a part of the statement instead of a call for each row.
CREATE FUNCTION rowlock.place(due timestamptz, now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT CASE WHEN due <= now - interval '1 s' THEN due ELSE greatest(due, now - interval '25 ms') END $$
