-- purpose: the last day of an ended job: it goes when that day is over
-- Stable, as its body is: only then is it a part of the statement instead of a call for each row.
CREATE FUNCTION rowlock.expiry(finished_at timestamptz, keep_ms bigint) RETURNS date LANGUAGE sql STABLE AS
$$ SELECT ((finished_at + least(keep_ms, 31536000000000) * interval '1 ms' - interval '1 us') AT TIME ZONE 'UTC')::date $$
