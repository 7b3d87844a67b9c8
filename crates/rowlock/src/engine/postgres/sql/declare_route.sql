-- purpose: send exactly these kinds and queues by a route; rows that are there already only with change
-- How those were before that are named or went by it: kind or queue, name, route.
CREATE FUNCTION rowlock.declare_route(of_route text, kinds text[], queues text[], change boolean)
RETURNS TABLE (target text, name text, before text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    changed bigint := 0;
    more bigint;
BEGIN
    RETURN QUERY SELECT 'kind', k.kind::text, k.route FROM rowlock.kind AS k
    WHERE k.kind = ANY (kinds) OR k.route = of_route ORDER BY k.kind FOR UPDATE;
    RETURN QUERY SELECT 'queue', q.queue::text, q.route FROM rowlock.queue AS q
    WHERE q.queue = ANY (queues) OR q.route = of_route ORDER BY q.queue FOR UPDATE;
    IF change THEN
        UPDATE rowlock.kind AS k SET route = CASE WHEN k.kind = ANY (kinds) THEN of_route ELSE 'direct' END
        WHERE (k.kind = ANY (kinds)) <> (k.route = of_route);
        GET DIAGNOSTICS changed = ROW_COUNT;
        UPDATE rowlock.queue AS q SET route = CASE WHEN q.queue = ANY (queues) THEN of_route ELSE 'direct' END
        WHERE (q.queue = ANY (queues)) <> (q.route = of_route);
        GET DIAGNOSTICS more = ROW_COUNT;
        changed := changed + more;
    END IF;
    INSERT INTO rowlock.kind (kind, route) SELECT DISTINCT new, of_route FROM unnest(kinds) AS new ORDER BY new
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS more = ROW_COUNT;
    changed := changed + more;
    INSERT INTO rowlock.queue (queue, route) SELECT DISTINCT new, of_route FROM unnest(queues) AS new ORDER BY new
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS more = ROW_COUNT;
    changed := changed + more;
    -- Others have to look at places that their claims have passed.
    IF changed > 0 THEN
        PERFORM nextval('rowlock.unsorted');
        IF rowlock.must_notify() THEN
            PERFORM rowlock.notify();
        END IF;
    END IF;
END $$
