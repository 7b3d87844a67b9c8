-- purpose: the piece of the history for a last day: forty days in turn, then all that is kept longer
CREATE FUNCTION rowlock.slot(expires_on date, now timestamptz) RETURNS smallint LANGUAGE sql IMMUTABLE AS
$$ SELECT (CASE WHEN expires_on - (now AT TIME ZONE 'UTC')::date > 36 THEN 40
                ELSE (expires_on - date '1970-01-01') % 40 END)::smallint $$
