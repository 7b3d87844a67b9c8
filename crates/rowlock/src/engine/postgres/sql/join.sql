-- purpose: a worker's lease begins; its number
CREATE FUNCTION rowlock.join(worker text, lease_ms bigint) RETURNS bigint LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
INSERT INTO rowlock.worker (id, lease_ms, joined_at, seen_at)
SELECT $1, $2, now, now FROM rowlock.now() AS now
-- A join whose answer was lost may be tried again.
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at
RETURNING number
$$
