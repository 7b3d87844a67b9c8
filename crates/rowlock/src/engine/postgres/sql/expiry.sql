-- purpose: the last day of an ended job: it goes when that day is over
CREATE FUNCTION rowlock.expiry(finished_at timestamptz, keep_ms bigint) RETURNS date LANGUAGE sql IMMUTABLE AS
$$ SELECT ((finished_at + least(keep_ms, 31536000000000) * interval '1 ms' - interval '1 us') AT TIME ZONE 'UTC')::date $$
