-- purpose: keys whose rows still want the work after a job was done: noted once, then held back
-- A row that has a live job already may want something new: nothing is said of it.
CREATE FUNCTION rowlock.still_wanted(of_pair text, keys text[]) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    wait_ms bigint;
    of_kind text;
    idle bigint;
BEGIN
    SELECT p.hold_back_ms, p.kind INTO wait_ms, of_kind FROM rowlock.pair AS p WHERE p.name = of_pair;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    WITH asked AS (
        SELECT DISTINCT CASE WHEN octet_length(k) > 255
            THEN encode(sha256(convert_to(k, 'UTF8')), 'hex') ELSE k END COLLATE "C" AS key
        FROM unnest(keys) AS k
    ), noted AS (
        INSERT INTO rowlock.pair_key AS old (pair, key, reason, not_before, n)
        SELECT of_pair, asked.key, 'done', now, 1 FROM asked
        WHERE NOT EXISTS (SELECT 1 FROM rowlock.key AS live WHERE live.kind = of_kind AND live.unique_key = asked.key)
        ORDER BY asked.key
        ON CONFLICT (pair, key) DO UPDATE SET
            reason = CASE WHEN old.reason IN ('done', 'ineffective') THEN 'ineffective'
                          WHEN coalesce(old.not_before > now, true) THEN old.reason ELSE 'done' END,
            n = CASE old.reason WHEN 'done' THEN 1 WHEN 'ineffective' THEN old.n + 1
                     ELSE CASE WHEN coalesce(old.not_before > now, true) THEN old.n ELSE 1 END END,
            not_before = CASE
                WHEN old.reason IN ('done', 'ineffective') THEN
                    now + rowlock.hold_back(wait_ms, CASE old.reason WHEN 'done' THEN 1 ELSE old.n + 1 END)
                WHEN coalesce(old.not_before > now, true) THEN old.not_before
                ELSE now END
        RETURNING reason
    )
    SELECT count(*) INTO idle FROM noted WHERE reason = 'ineffective';
    IF idle > 0 THEN
        UPDATE rowlock.pair AS p SET ineffective = p.ineffective + idle WHERE p.name = of_pair;
    END IF;
    RETURN idle;
END $$
