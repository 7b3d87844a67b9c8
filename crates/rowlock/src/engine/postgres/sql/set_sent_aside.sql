-- purpose: take what routes have held for long out of one segment, so that it can be emptied; how many jobs
-- differs: only Postgres sets jobs aside. A worker does so for itself, but a route may have nobody who lives.
CREATE FUNCTION rowlock.set_sent_aside(segment integer, now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    routes CONSTANT bigint[] := ARRAY (SELECT number FROM rowlock.worker WHERE id LIKE 'drain:%');
    old record;
BEGIN
    IF routes = '{}' THEN
        RETURN 0;
    END IF;
    EXECUTE format($old$
        SELECT array_agg(id) AS ids, array_agg(token) AS tokens
        FROM (SELECT id, token FROM rowlock.job_%s
              WHERE worker = ANY ($1) AND started_at <= $2 - interval '10 s' LIMIT 5000) AS old
        $old$, segment) INTO old USING routes, now;
    IF old.ids IS NULL THEN
        RETURN 0;
    END IF;
    RETURN (SELECT count(*) FROM rowlock.set_aside(old.ids, old.tokens));
END $$
