-- purpose: store jobs as their kinds say, unless a switch refuses one or its key is taken
-- moves: stage none -> pending
-- differs: one function for each segment, so that only the one that is written is locked
-- The answers are in the order of the input; those that met their key are named beside.
CREATE FUNCTION rowlock.stage_many_{s}(
    jobs json, OUT ids bigint[], OUT statuses text[], OUT met bigint[], OUT met_kinds text[], OUT met_keys text[],
    OUT late boolean, OUT problems text[], OUT problems_at bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- A place in the lane is taken only once the transaction has a number: whoever claims knows then
    -- that nothing older is still to come, but for a late commit.
    xid CONSTANT xid8 := pg_current_xact_id();
    now CONSTANT timestamptz := rowlock.now();
BEGIN
    WITH resolved AS MATERIALIZED (
        SELECT i.*,
               CASE WHEN i.problem IS NULL AND NOT i.rejected
                     AND NOT rowlock.is_on(q.switch, q.switch_until, now, 'reject')
                     AND (i.plain_key IS NOT NULL OR i.key_fields = '{}')
                    THEN nextval('rowlock.job_id') END AS id,
               CASE WHEN octet_length(i.plain_key) > 255
                    THEN encode(sha256(convert_to(i.plain_key, 'UTF8')), 'hex') ELSE i.plain_key END AS unique_key,
               i.held OR rowlock.is_on(q.switch, q.switch_until, now, 'hold') AS waits,
               -- What was due a while ago goes before what is due now.
               rowlock.place(i.due, now) AS ready_at,
               CASE WHEN i.problem IS NULL AND i.plain_key IS NULL AND i.key_fields <> '{}'
                    THEN (SELECT format('the payload lacks the field "%s", which is part of the unique key of %s', f, i.kind)
                          FROM unnest(i.key_fields) AS f
                          WHERE jsonb_typeof(i.payload::jsonb) <> 'object' OR NOT i.payload::jsonb ? f LIMIT 1)
                    ELSE i.problem END AS broken
        FROM (
            SELECT x.n, x.kind COLLATE "C" AS kind, coalesce(x.payload, '{}') AS payload,
                   coalesce(x.queue, k.queue, x.declared ->> 'queue', 'default') COLLATE "C" AS queue,
                   coalesce(x.priority, k.priority, (x.declared ->> 'priority')::bigint, 0) AS priority,
                   coalesce(x.max_attempts, k.max_attempts, (x.declared ->> 'max_attempts')::bigint, 5) AS max_attempts,
                   coalesce(x.scheduled_at, now + x.delay_ms * interval '1 ms', now) AS due,
                   coalesce(x.unique_key,
                            CASE WHEN f.key_fields <> '{}' THEN rowlock.stage_key(x.payload, f.key_fields) END) AS plain_key,
                   CASE WHEN x.unique_key IS NULL THEN f.key_fields ELSE '{}' END AS key_fields,
                   coalesce(x.unique_until, k.unique_until, x.declared ->> 'unique_until', 'finished') AS unique_until,
                   nullif(x.tags, '{}') AS tags, x.trace_context, x.backoff,
                   rowlock.is_on(k.switch, k.switch_until, now, 'reject') AS rejected,
                   rowlock.is_on(k.switch, k.switch_until, now, 'hold') AS held,
                   -- A kind that is known has a valid name.
                   coalesce(
                       rowlock.stage_problem(CASE WHEN k.kind IS NULL THEN coalesce(x.kind, '') END,
                           coalesce(x.payload, '{}'), x.queue, x.priority, x.scheduled_at, x.max_attempts,
                           x.unique_key, x.unique_until, x.tags),
                       CASE WHEN x.delay_ms IS NOT NULL OR x.trace_context IS NOT NULL OR x.backoff IS NOT NULL
                                OR k.kind IS NULL AND x.declared IS NOT NULL
                            THEN rowlock.stage_rare_problem(now + x.delay_ms * interval '1 ms', x.delay_ms, x.trace_context,
                                x.backoff, CASE WHEN k.kind IS NULL THEN x.declared END) END) AS problem
            FROM ROWS FROM (json_to_recordset(jobs) AS (
                     kind text, payload text, queue text, priority bigint, scheduled_at timestamptz,
                     delay_ms bigint, max_attempts bigint, unique_key text, unique_until text, tags text[],
                     trace_context text, backoff json, declared json)) WITH ORDINALITY
                 AS x (kind, payload, queue, priority, scheduled_at, delay_ms, max_attempts, unique_key,
                       unique_until, tags, trace_context, backoff, declared, n)
            LEFT JOIN rowlock.kind AS k ON k.kind = x.kind
            CROSS JOIN LATERAL (SELECT coalesce(k.key_fields, CASE WHEN x.declared IS NOT NULL THEN ARRAY (
                SELECT field FROM json_array_elements_text(
                    CASE json_typeof(x.declared -> 'key') WHEN 'array' THEN x.declared -> 'key' END) AS field) END,
                '{}') AS key_fields) AS f
            -- A step of its own: what it makes is used more than once.
            OFFSET 0
        ) AS i LEFT JOIN rowlock.queue AS q ON q.queue = i.queue
        ORDER BY i.n
    ), taken AS (
        INSERT INTO rowlock.key (kind, unique_key, id)
        SELECT r.kind, r.unique_key, r.id FROM resolved AS r
        WHERE r.id IS NOT NULL AND r.unique_key IS NOT NULL
        ORDER BY r.kind, r.unique_key, r.n
        ON CONFLICT DO NOTHING
        RETURNING id
    ), fresh AS NOT MATERIALIZED (
        SELECT r.id, r.ready_at, r.due AS scheduled_at, now AS created_at, NULL::timestamptz AS started_at,
               NULL::bigint AS token, NULL::bigint AS worker, 0 AS attempt, r.max_attempts::integer,
               r.priority::smallint, r.unique_until = 'start' AS until_start, false AS cancel_requested,
               false AS suspect, r.waits AS held, r.queue, r.kind, r.unique_key, r.tags,
               r.trace_context, r.backoff, NULL::jsonb AS errors, r.payload::json AS payload
        FROM resolved AS r
        WHERE r.id IS NOT NULL AND (r.unique_key IS NULL OR EXISTS (SELECT 1 FROM taken WHERE taken.id = r.id))
    ), near AS (
        INSERT INTO rowlock.job_{s} SELECT * FROM fresh AS f WHERE NOT f.held AND f.ready_at <= now + interval '1 min'
    ), far AS (
        INSERT INTO rowlock.aside SELECT * FROM fresh AS f WHERE f.held OR f.ready_at > now + interval '1 min'
    ), lanes AS (
        INSERT INTO rowlock.lane
        SELECT f.* FROM (SELECT DISTINCT f.queue, f.kind, f.priority FROM fresh AS f) AS f
        WHERE NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                          WHERE l.queue = f.queue AND l.kind = f.kind AND l.priority = f.priority)
    ), counted AS (
        INSERT INTO rowlock.switched (target, name, n)
        SELECT CASE WHEN r.rejected THEN 'kind' ELSE 'queue' END, CASE WHEN r.rejected THEN r.kind ELSE r.queue END, count(*)
        FROM resolved AS r WHERE r.id IS NULL AND r.broken IS NULL GROUP BY 1, 2
    )
    SELECT array_agg(r.id), array_agg(CASE WHEN r.id IS NULL THEN 'rejected' WHEN r.met THEN 'duplicate'
                                           WHEN r.waits THEN 'held' ELSE 'queued' END),
           array_agg(r.n) FILTER (WHERE r.met), array_agg(r.kind) FILTER (WHERE r.met),
           array_agg(r.unique_key) FILTER (WHERE r.met),
           bool_or(r.ready_at < now - interval '25 ms'),
           array_agg(r.broken) FILTER (WHERE r.broken IS NOT NULL), array_agg(r.n) FILTER (WHERE r.broken IS NOT NULL)
    INTO ids, statuses, met, met_kinds, met_keys, late, problems, problems_at
    FROM (SELECT r.*, r.id IS NOT NULL AND r.unique_key IS NOT NULL
                      AND NOT EXISTS (SELECT 1 FROM taken WHERE taken.id = r.id) AS met
          FROM resolved AS r ORDER BY r.n) AS r;
END $$
