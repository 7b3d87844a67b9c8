-- purpose: one batch of a tick: rows that are wanted, have no live job and aren't held back get one
-- moves: stage none -> pending
-- differs: one statement for the whole batch, in which the pair's query can only read (rowlock.read_only). The
-- search_path is the caller's for that query alone: an operator or a function that others have put into one of its
-- schemas may fit the types of ours better than the server's own.
-- wanted: a SELECT of key and row, in the order of the keys, at most one more than at_most; lines: what it
-- reads if not tables; keyless: counts rows without a key at the end of a tick that took several batches.
-- Nothing waits long for a key that an open transaction has: the caller tries fewer rows. expect_live: most
-- likely all of them have live jobs, which is told by one look into the index of keys.
CREATE FUNCTION rowlock.tick(
    wanted text, keyless text, lines text, at_most bigint, of_pair text, of_shard integer, with_token bigint,
    of_kind text, to_queue text, with_priority smallint, direct boolean, window_ms bigint, seed double precision,
    dry boolean, expect_live boolean)
RETURNS TABLE (rows_found bigint, enqueued bigint, lost bigint, live bigint, held_back bigint, rejected bigint,
    without_key bigint, repeated bigint, last_key text, more boolean, sample text[], broken text)
LANGUAGE plpgsql SET jit = off SET lock_timeout = '100ms' AS $$
DECLARE
    now timestamptz;
    rule record;
    switched record;
    lane rowlock.lane;
    refused boolean;
    did record;
    further bigint;
    noted boolean;
    reading text;
    statement text;
    quickly text;
    keys text[];
BEGIN
    -- The first tick of a transaction knows it.
    IF nullif(pg_catalog.current_setting('rowlock.path', true), '') IS NULL THEN
        PERFORM pg_catalog.set_config('rowlock.path', pg_catalog.current_setting('search_path'), true);
    END IF;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    now := rowlock.now();
    IF with_token IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM rowlock.post AS p
        WHERE p.duty = 'pair' AND p.name = of_pair AND p.shard = of_shard AND p.token = with_token) THEN
        RAISE EXCEPTION 'rowlock: another process leads this pair' USING ERRCODE = 'RL002';
    END IF;
    SELECT k.* INTO rule FROM rowlock.kind AS k WHERE k.kind = of_kind;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'rowlock: the kind % has no row: run `rowlock apply`', of_kind USING ERRCODE = 'RL001';
    END IF;
    lane := ROW(coalesce(to_queue, rule.queue), of_kind, coalesce(with_priority, rule.priority));
    SELECT rowlock.is_on(rule.switch, rule.switch_until, now, 'reject') AS kind_rejects,
           coalesce(bool_or(rowlock.is_on(q.switch, q.switch_until, now, 'reject')), false) AS queue_rejects,
           coalesce(bool_or(rowlock.is_on(q.switch, q.switch_until, now, 'hold')), false)
               OR rowlock.is_on(rule.switch, rule.switch_until, now, 'hold') AS holds
    INTO switched FROM rowlock.queue AS q WHERE q.queue = lane.queue;
    refused := switched.kind_rejects OR switched.queue_rejects;
    IF expect_live AND lines IS NULL THEN
        SELECT r.keys INTO keys
        FROM rowlock.read_only(format('SELECT array_agg(w.key) FROM (%s) AS w', wanted)) AS r (keys text[]);
        rows_found := least(cardinality(keys), at_most);
        -- As many different keys as rows: each has its job, and none is missing or there twice.
        IF rows_found > 0 AND (keyless IS NULL OR cardinality(keys) > at_most) AND rows_found = (
            SELECT count(*) FROM rowlock.key AS k
            WHERE k.kind = of_kind AND k.unique_key = ANY (keys[1:at_most])) THEN
            RETURN QUERY SELECT rows_found, 0::bigint, 0::bigint, rows_found, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
                keys[rows_found], cardinality(keys) > at_most, '{}'::text[], NULL::text;
            RETURN;
        END IF;
    END IF;
    -- Of most pairs no key is held back.
    noted := EXISTS (SELECT 1 FROM rowlock.pair_key AS p WHERE p.pair = of_pair);
    reading := format($read$
        SELECT l.n, l.key, l.unique_key, l.again, l.counts, l.live, l.known, l.waits,
               CASE WHEN l.counts AND NOT l.live AND NOT l.waits THEN %2$s END AS payload
        FROM (
            SELECT w.n, w.key, plain.unique_key, w.again, w.n <= %6$s AND w.key IS NOT NULL AND NOT w.again AS counts,
                   held.one IS NOT NULL AS live, CASE WHEN held.one IS NULL THEN w.q END AS q, %4$s
            FROM (SELECT w.key, w.q, row_number() OVER () AS n, coalesce(lag(w.key) OVER () = w.key, false) AS again
                  FROM (
                  %1$s
                  ) AS w) AS w
            CROSS JOIN LATERAL (SELECT CASE WHEN octet_length(w.key) > 255
                THEN encode(sha256(convert_to(w.key, 'UTF8')), 'hex') ELSE w.key END AS unique_key) AS plain
            -- LIMIT: one look into the index for each row, whatever the planner thinks of the sizes.
            LEFT JOIN LATERAL (
                SELECT 1 AS one FROM rowlock.key AS k
                WHERE k.kind = %3$L AND k.unique_key = plain.unique_key LIMIT 1) AS held ON true
            %5$s
            OFFSET 0) AS l
        $read$, wanted, CASE WHEN lines IS NULL THEN 'row_to_json(l.q)' ELSE 'l.q::json' END, of_kind,
        CASE WHEN noted THEN 'known.one IS NOT NULL AS known, coalesce(known.waits, false) AS waits'
             ELSE 'false AS known, false AS waits' END,
        CASE WHEN noted THEN format($known$
            LEFT JOIN LATERAL (
                SELECT 1 AS one, p.reason <> 'done' AND coalesce(p.not_before > %L, true) AS waits
                FROM rowlock.pair_key AS p
                WHERE held.one IS NULL AND p.pair = %L AND p.key = plain.unique_key LIMIT 1) AS known ON true
            $known$, now, of_pair) ELSE '' END,
        at_most);
    statement := format($tick$
        WITH looked AS MATERIALIZED (
            %1$s
        ), needed AS MATERIALIZED (
            SELECT c.*, CASE WHEN c.problem IS NULL AND NOT $5 THEN nextval('rowlock.job_id') END AS id,
                   row_number() OVER () - 1 AS i
            FROM (
                -- What is short and plain breaks no rule.
                SELECT s.*, CASE WHEN octet_length(s.payload::text) > 256 OR strpos(s.payload::text, E'\\u0000') > 0
                    THEN rowlock.stage_problem($2, s.payload::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL) END AS problem
                FROM (SELECT l.n, l.key, l.unique_key, l.known, l.payload
                      FROM looked AS l WHERE l.counts AND NOT l.live AND NOT l.waits OFFSET 0) AS s OFFSET 0) AS c
        ), taken AS (
            INSERT INTO rowlock.key (kind, unique_key, id)
            SELECT $2, r.unique_key, r.id FROM needed AS r WHERE r.id IS NOT NULL ORDER BY r.unique_key
            -- Somebody else may be quicker.
            ON CONFLICT DO NOTHING
            RETURNING id
        ), stamp AS MATERIALIZED (
            -- A place in the lane is taken only once the transaction has a number.
            SELECT CASE WHEN pg_current_xact_id() IS NOT NULL THEN rowlock.now() END AS now
        ), fresh AS MATERIALIZED (
            -- What is due now or later waits where its time is (rowlock.place).
            SELECT r.id, r.unique_key, r.known, r.payload, born.at AS born, born.at + CASE WHEN $6 > 0
                THEN ($7 + r.i * 0.6180339887498949 - floor($7 + r.i * 0.6180339887498949)) * $6 * interval '1 ms'
                ELSE interval '0' END AS due
            FROM needed AS r CROSS JOIN LATERAL (SELECT (SELECT s.now FROM stamp AS s) AS at) AS born
            WHERE r.id IN (SELECT t.id FROM taken AS t)
        ), near AS (
            INSERT INTO rowlock.job_%2$s
            SELECT f.id, f.due, f.due, f.born, NULL, NULL, NULL, 0, $9, ($8).priority,
                   $10, false, false, false, ($8).queue, $2, f.unique_key, NULL, NULL, NULL, NULL, f.payload
            FROM fresh AS f WHERE NOT $12 AND f.due <= f.born + interval '1 min'
        ), far AS (
            INSERT INTO rowlock.aside
            SELECT f.id, f.due, f.due, f.born, NULL, NULL, NULL, 0, $9, ($8).priority,
                   $10, false, false, $12, ($8).queue, $2, f.unique_key, NULL, NULL, NULL, NULL, f.payload
            FROM fresh AS f WHERE $12 OR f.due > f.born + interval '1 min'
        )
        SELECT a.*, b.*, c.*,
               (SELECT l.key FROM looked AS l WHERE l.n <= $1 AND l.key IS NOT NULL ORDER BY l.n DESC LIMIT 1) AS last_key,
               (SELECT format('the row with key %%s can''t become a job: %%s', c.key, c.problem)
                FROM needed AS c WHERE c.problem IS NOT NULL ORDER BY c.n LIMIT 1) AS broken,
               ARRAY (SELECT c.key FROM needed AS c WHERE $5 AND c.problem IS NULL ORDER BY c.n LIMIT 10) AS sample
        FROM (SELECT count(*) FILTER (WHERE l.n <= $1) AS found,
                     count(*) FILTER (WHERE l.n <= $1 AND l.key IS NULL) AS without_key,
                     count(*) FILTER (WHERE l.again) AS repeated, coalesce(bool_or(l.n > $1), false) AS more,
                     count(*) FILTER (WHERE l.counts AND l.live) AS live,
                     count(*) FILTER (WHERE l.counts AND l.waits) AS held_back
              FROM looked AS l) AS a,
             (SELECT count(*) AS wanting, count(*) FILTER (WHERE NOT c.known) AS unknown, count(c.id) AS tried
              FROM needed AS c WHERE c.problem IS NULL) AS b,
             (SELECT count(*) AS made, count(*) FILTER (WHERE NOT f.known) AS made_unknown,
                     min(f.due) AS earliest, max(f.born) AS at
              FROM fresh AS f) AS c
        $tick$,
        -- What was read from another database needs no care; a query does.
        CASE WHEN lines IS NULL THEN $here$
            SELECT * FROM rowlock.read_only($3) AS l (n bigint, key text, unique_key text, again boolean,
                counts boolean, live boolean, known boolean, waits boolean, payload json)
            $here$ ELSE reading END,
        (SELECT last_value % 8 FROM rowlock.ring));
    -- The keys were free a moment ago: without ON CONFLICT they cost half. If one is taken after all, the
    -- whole batch is tried again with it.
    quickly := replace(replace(statement, 'ON CONFLICT DO NOTHING', ''),
                       'WHERE r.id IN (SELECT t.id FROM taken AS t)', 'WHERE r.id IS NOT NULL');
    BEGIN
        EXECUTE quickly INTO did
        USING at_most, of_kind, reading, of_pair, dry OR refused, window_ms, seed, lane, rule.max_attempts,
              rule.unique_until = 'start', lines::json, switched.holds;
    EXCEPTION WHEN unique_violation THEN
        EXECUTE statement INTO did
        USING at_most, of_kind, reading, of_pair, dry OR refused, window_ms, seed, lane, rule.max_attempts,
              rule.unique_until = 'start', lines::json, switched.holds;
    END;
    rows_found := did.found;
    live := did.live + did.tried - did.made;
    held_back := did.held_back;
    without_key := did.without_key;
    repeated := did.repeated;
    last_key := did.last_key;
    -- Without a key there is nothing to go on after.
    more := did.more AND did.last_key IS NOT NULL;
    sample := CASE WHEN dry AND NOT refused THEN did.sample ELSE '{}' END;
    broken := did.broken;
    rejected := CASE WHEN refused THEN did.wanting ELSE 0 END;
    enqueued := CASE WHEN dry AND NOT refused THEN did.wanting ELSE did.made END;
    lost := CASE WHEN NOT direct THEN 0 WHEN dry AND NOT refused THEN did.unknown ELSE did.made_unknown END;
    IF keyless IS NOT NULL AND NOT more THEN
        SELECT r.n INTO further FROM rowlock.read_only(keyless) AS r (n bigint);
        rows_found := rows_found + further;
        without_key := without_key + further;
    END IF;
    IF rejected > 0 AND NOT dry THEN
        INSERT INTO rowlock.switched (target, name, n)
        VALUES (CASE WHEN switched.kind_rejects THEN 'kind' ELSE 'queue' END,
                CASE WHEN switched.kind_rejects THEN of_kind ELSE lane.queue END, rejected);
    END IF;
    IF did.made > 0 AND NOT switched.holds THEN
        PERFORM rowlock.arrived(ARRAY[lane], did.earliest, did.at);
    END IF;
    -- The fence, at the end: the leader's beat waits for nobody who holds it for long.
    IF with_token IS NOT NULL AND (did.made > 0 OR (rejected > 0 AND NOT dry)) THEN
        PERFORM 1 FROM rowlock.post AS p
        WHERE p.duty = 'pair' AND p.name = of_pair AND p.shard = of_shard AND p.token = with_token FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'rowlock: another process leads this pair' USING ERRCODE = 'RL002';
        END IF;
    END IF;
    RETURN NEXT;
END $$
