-- purpose: a worker's lease begins; its number
-- The number is random: one that a sequence gives out comes back after a failover, a restore or a copy, and then two
-- workers answer for each other's jobs. Above zero: routes are below.
CREATE FUNCTION rowlock.join(worker text, lease_ms bigint) RETURNS bigint LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
INSERT INTO rowlock.worker (number, id, lease_ms, joined_at, seen_at)
SELECT 1 + (hashtextextended(gen_random_uuid()::text, 0) & 4611686018427387903), $1, $2, now, now
FROM rowlock.now() AS now
-- A join whose answer was lost may be tried again.
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at
RETURNING number
$$
