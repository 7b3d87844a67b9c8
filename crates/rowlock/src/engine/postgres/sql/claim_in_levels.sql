-- purpose: lease due jobs, best first: queues by their shares, strictly by priority within a queue
-- moves: claim pending -> processing
-- differs: bounds are hints, so now and then a claim goes without; one statement, no round trips
-- of_kinds: with a route and none named, every kind
-- turn: which queue goes first; and, times 65536, 1 of a worker that hears notifications, 2 of one that doesn't, 0 of an
-- older one, which doesn't say
-- Answers, of each level: a row without an id for each of its kinds, with what its jobs share (segment, queue, priority,
-- back-off, timeout), then the jobs; what a row doesn't say is as those have said, and a job is due, and was staged,
-- when it is ready. Of a job the last column says when it was staged: with the store's number, which the last row has
-- for a payload, that makes its idempotency key.
-- Sending and reading a value costs as much as storing it.
CREATE FUNCTION rowlock.claim_in_levels(
    to_worker bigint, with_token bigint, most integer, of_kinds text[], of_queues text[], queue_order text,
    weighed text[], weights integer[], capped text[], caps integer[], turn bigint, without_bounds boolean,
    may_begin_anew boolean, seen_unsorted bigint, aside_after timestamptz, bound_queues text[], bound_kinds text[], bound_priorities smallint[], bound_times timestamptz[], bound_ids bigint[],
    of_route text DEFAULT 'direct')
RETURNS SETOF rowlock.claimed LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
#variable_conflict use_variable
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    unsorted CONSTANT bigint := coalesce(pg_sequence_last_value('rowlock.unsorted') + 1, 0);
    current CONSTANT integer := coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8;
    filled boolean[];
    segments integer[] := '{}';
    segment integer;
    level record;
    taken integer := 0;
    of_queue integer := 0;
    last_queue text;
    share integer;
    cap integer;
    all_weights numeric;
    room integer;
    quota integer;
    got integer;
    next_due timestamptz;
    later timestamptz;
    lane_queues text[];
    lane_kinds text[];
    lane_priorities smallint[];
    per_queue jsonb := '{}';
    more boolean := false;
    before integer;
    look_aside boolean := false;
    stopped_kinds text[];
    lowest timestamptz;
    furthest timestamptz;
    stopped_queues text[];
    every_kind CONSTANT boolean := of_kinds = '{}' AND of_route <> 'direct';
    routed_kinds text[] := '{}';
    routed_queues text[] := '{}';
    first record;
    places tid[];
    only_kind text;
BEGIN
    without_bounds := without_bounds OR (may_begin_anew AND unsorted <> seen_unsorted);
    IF NOT EXISTS (SELECT 1 FROM rowlock.worker AS w WHERE w.number = to_worker) THEN
        RAISE EXCEPTION 'the worker was given up' USING ERRCODE = 'RL002';
    END IF;
    -- What has become due is in the ring before anybody is served.
    IF EXISTS (SELECT 1 FROM rowlock.aside AS a
               WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect
                 AND a.ready_at >= aside_after AND a.ready_at <= now)
        OR (without_bounds AND EXISTS (SELECT 1 FROM rowlock.aside AS a WHERE a.held)) THEN
        SELECT earliest, latest INTO lowest, furthest FROM rowlock.bring_back_due(aside_after, without_bounds);
    END IF;
    filled := ARRAY[pg_relation_size('rowlock.job_0') > 0, pg_relation_size('rowlock.job_1') > 0,
                    pg_relation_size('rowlock.job_2') > 0, pg_relation_size('rowlock.job_3') > 0];
    -- Oldest first, as far as the pointer knows. Every segment that isn't empty is looked at.
    FOR n IN 1..4 LOOP
        segment := (current + n) % 4;
        IF filled[segment + 1] THEN
            segments := segments || segment;
            IF without_bounds THEN
                CASE segment WHEN 0 THEN PERFORM rowlock.claim_lanes_0();
                             WHEN 1 THEN PERFORM rowlock.claim_lanes_1();
                             WHEN 2 THEN PERFORM rowlock.claim_lanes_2();
                             ELSE PERFORM rowlock.claim_lanes_3(); END CASE;
            END IF;
        END IF;
    END LOOP;
    -- A kind with another route goes by that one, whatever its queue's is. What goes by none has none in
    -- its kind nor in its queue.
    SELECT ARRAY (SELECT k.kind FROM rowlock.kind AS k
                  WHERE rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
                     OR k.route NOT IN ('direct', of_route)),
           ARRAY (SELECT q.queue FROM rowlock.queue AS q
                  WHERE rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause')
                     OR (of_route = 'direct' AND q.route <> 'direct'))
    INTO stopped_kinds, stopped_queues;
    IF of_route <> 'direct' THEN
        routed_kinds := ARRAY (SELECT k.kind FROM rowlock.kind AS k WHERE k.route = of_route);
        routed_queues := ARRAY (SELECT q.queue FROM rowlock.queue AS q WHERE q.route = of_route);
    END IF;
    SELECT array_agg(l.queue), array_agg(l.kind), array_agg(l.priority)
    INTO lane_queues, lane_kinds, lane_priorities
    FROM (SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l
          WHERE (l.kind = ANY (of_kinds) OR every_kind) AND (of_queues = '{}' OR l.queue = ANY (of_queues))
            AND l.kind <> ALL (stopped_kinds) AND l.queue <> ALL (stopped_queues)
            AND (of_route = 'direct' OR l.kind = ANY (routed_kinds) OR l.queue = ANY (routed_queues))) AS l;
    IF queue_order = 'weighted' THEN
        all_weights := (SELECT sum(coalesce(weights[array_position(weighed, l.queue)], 1))
                        FROM (SELECT DISTINCT queue FROM unnest(lane_queues) AS queue) AS l);
    END IF;
    -- First each queue's share, then whatever is left to those that have more.
    FOR round IN 1..2 LOOP
        EXIT WHEN segments = '{}' OR taken >= most OR (round = 2 AND NOT more);
        FOR level IN
            SELECT * FROM (
                SELECT l.queue, l.place, l.priority, max(l.place) OVER () + 1 AS queues,
                       array_agg(l.kind) AS kinds, array_agg(l.ready_at) AS times, array_agg(l.id) AS ids,
                       array_agg(l.backoff) AS backoffs, array_agg(l.timeout_ms) AS timeouts
                FROM (
                    SELECT l.queue, l.kind, l.priority, k.backoff::text, k.timeout_ms,
                           dense_rank() OVER (ORDER BY array_position(of_queues, l.queue), l.queue COLLATE "C") - 1 AS place,
                           -- What has just been brought back may be behind the bounds.
                           CASE WHEN b.ready_at IS NULL THEN '-infinity'
                                ELSE least(b.ready_at, lowest - interval '1 us') END AS ready_at,
                           CASE WHEN lowest <= b.ready_at THEN 0 ELSE coalesce(b.id, 0) END AS id
                    FROM unnest(lane_queues, lane_kinds, lane_priorities) AS l (queue, kind, priority)
                    LEFT JOIN rowlock.kind AS k ON k.kind = l.kind
                    LEFT JOIN unnest(bound_queues, bound_kinds, bound_priorities, bound_times, bound_ids)
                        AS b (queue, kind, priority, ready_at, id)
                        ON b.queue = l.queue AND b.kind = l.kind AND b.priority = l.priority AND NOT without_bounds
                    -- As it is grouped, so that the kinds of a level stay in this order.
                    ORDER BY place, l.queue, l.priority, ready_at, l.kind COLLATE "C") AS l
                GROUP BY l.place, l.queue, l.priority) AS l
            ORDER BY CASE WHEN queue_order = 'strict' THEN l.place ELSE (l.place + l.queues - turn % l.queues) % l.queues END,
                     l.priority DESC
        LOOP
            EXIT WHEN taken >= most;
            IF last_queue IS DISTINCT FROM level.queue THEN
                last_queue := level.queue;
                of_queue := 0;
                cap := caps[array_position(capped, level.queue)];
                share := CASE WHEN round = 2 OR queue_order = 'strict' THEN most
                              WHEN queue_order = 'fair' THEN ceil(most::numeric / level.queues)
                              ELSE ceil(most::numeric * coalesce(weights[array_position(weighed, level.queue)], 1) / all_weights) END;
            END IF;
            -- Kinds of one priority share, then what is left goes to those that have more: no kind's
            -- backlog hides another's jobs.
            before := taken;
            FOR pass IN 1..2 LOOP
                FOREACH segment IN ARRAY segments LOOP
                    room := least(most - taken, share - of_queue,
                                  cap - coalesce((per_queue ->> level.queue)::integer, 0));
                    EXIT WHEN room <= 0;
                    quota := CASE pass WHEN 1 THEN ceil(room::numeric / cardinality(level.kinds)) ELSE room END;
                    CASE segment
                    WHEN 0 THEN places := rowlock.claim_0(level.queue, level.priority, level.kinds, level.times, level.ids, quota, room, now);
                    WHEN 1 THEN places := rowlock.claim_1(level.queue, level.priority, level.kinds, level.times, level.ids, quota, room, now);
                    WHEN 2 THEN places := rowlock.claim_2(level.queue, level.priority, level.kinds, level.times, level.ids, quota, room, now);
                    ELSE places := rowlock.claim_3(level.queue, level.priority, level.kinds, level.times, level.ids, quota, room, now);
                    END CASE;
                    CONTINUE WHEN places IS NULL;
                    RETURN QUERY SELECT segment::smallint, NULL::tid, NULL::timestamptz, NULL::bigint, shared.kind, level.queue, level.priority,
                        NULL, NULL::integer, NULL::integer, NULL::timestamptz, NULL, NULL::text[], NULL, NULL::boolean,
                        shared.backoff, shared.timeout_ms, NULL::timestamptz
                    FROM unnest(level.kinds, level.backoffs, level.timeouts) AS shared (kind, backoff, timeout_ms);
                    only_kind := CASE cardinality(level.kinds) WHEN 1 THEN level.kinds[1] END;
                    CASE segment
                    WHEN 0 THEN RETURN QUERY
                        UPDATE rowlock.job_0 AS job
                        SET token = with_token, worker = to_worker, attempt = job.attempt + 1, started_at = now
                        WHERE job.ctid = ANY (places) AND job.token IS NULL
                        RETURNING NULL::smallint, job.ctid, job.ready_at, job.id, nullif(job.kind, only_kind), NULL, NULL::smallint,
                            job.payload::text, job.attempt, job.max_attempts, nullif(job.scheduled_at, job.ready_at),
                            job.unique_key, job.tags, job.trace_context, NULL::boolean, job.backoff::text, NULL::bigint,
                            nullif(job.created_at, job.ready_at);
                    WHEN 1 THEN RETURN QUERY
                        UPDATE rowlock.job_1 AS job
                        SET token = with_token, worker = to_worker, attempt = job.attempt + 1, started_at = now
                        WHERE job.ctid = ANY (places) AND job.token IS NULL
                        RETURNING NULL::smallint, job.ctid, job.ready_at, job.id, nullif(job.kind, only_kind), NULL, NULL::smallint,
                            job.payload::text, job.attempt, job.max_attempts, nullif(job.scheduled_at, job.ready_at),
                            job.unique_key, job.tags, job.trace_context, NULL::boolean, job.backoff::text, NULL::bigint,
                            nullif(job.created_at, job.ready_at);
                    WHEN 2 THEN RETURN QUERY
                        UPDATE rowlock.job_2 AS job
                        SET token = with_token, worker = to_worker, attempt = job.attempt + 1, started_at = now
                        WHERE job.ctid = ANY (places) AND job.token IS NULL
                        RETURNING NULL::smallint, job.ctid, job.ready_at, job.id, nullif(job.kind, only_kind), NULL, NULL::smallint,
                            job.payload::text, job.attempt, job.max_attempts, nullif(job.scheduled_at, job.ready_at),
                            job.unique_key, job.tags, job.trace_context, NULL::boolean, job.backoff::text, NULL::bigint,
                            nullif(job.created_at, job.ready_at);
                    ELSE RETURN QUERY
                        UPDATE rowlock.job_3 AS job
                        SET token = with_token, worker = to_worker, attempt = job.attempt + 1, started_at = now
                        WHERE job.ctid = ANY (places) AND job.token IS NULL
                        RETURNING NULL::smallint, job.ctid, job.ready_at, job.id, nullif(job.kind, only_kind), NULL, NULL::smallint,
                            job.payload::text, job.attempt, job.max_attempts, nullif(job.scheduled_at, job.ready_at),
                            job.unique_key, job.tags, job.trace_context, NULL::boolean, job.backoff::text, NULL::bigint,
                            nullif(job.created_at, job.ready_at);
                    END CASE;
                    GET DIAGNOSTICS got = ROW_COUNT;
                    taken := taken + got;
                    of_queue := of_queue + got;
                    more := more OR of_queue >= share;
                    IF cap IS NOT NULL AND got > 0 THEN
                        per_queue := per_queue || jsonb_build_object(level.queue, coalesce((per_queue ->> level.queue)::integer, 0) + got);
                    END IF;
                END LOOP;
                EXIT WHEN cardinality(level.kinds) = 1 OR taken - before < quota;
            END LOOP;
        END LOOP;
        last_queue := NULL;
    END LOOP;
    IF taken < most THEN
        FOREACH segment IN ARRAY segments LOOP
            CASE segment WHEN 0 THEN later := rowlock.claim_next_0(lane_queues, lane_kinds, lane_priorities, now);
                         WHEN 1 THEN later := rowlock.claim_next_1(lane_queues, lane_kinds, lane_priorities, now);
                         WHEN 2 THEN later := rowlock.claim_next_2(lane_queues, lane_kinds, lane_priorities, now);
                         ELSE later := rowlock.claim_next_3(lane_queues, lane_kinds, lane_priorities, now); END CASE;
            next_due := least(next_due, later);
        END LOOP;
        -- Not further than a hundred rows: they may be for others, who know when to come for them.
        SELECT min(a.ready_at) AS due, count(*) AS seen, max(a.ready_at) AS latest,
               min(a.ready_at) FILTER (WHERE a.ready_at > now AND (a.kind = ANY (of_kinds) OR every_kind)
                   AND (of_queues = '{}' OR a.queue = ANY (of_queues))
                   AND a.kind <> ALL (stopped_kinds) AND a.queue <> ALL (stopped_queues)
                   AND (of_route = 'direct' OR a.kind = ANY (routed_kinds) OR a.queue = ANY (routed_queues))) AS wanted
        INTO first
        FROM (SELECT a.ready_at, a.kind, a.queue FROM rowlock.aside AS a
              WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect AND a.ready_at >= aside_after
              ORDER BY a.ready_at LIMIT 100) AS a;
        look_aside := coalesce(first.due <= now, false);
        next_due := least(next_due, coalesce(first.wanted, CASE WHEN first.seen = 100 THEN first.latest END));
        -- A worker that could take more puts the sign up before it goes to sleep. It runs out by itself, since a worker can
        -- die in its sleep, and holds for longer than a listening worker sleeps. One from before the server's clock was
        -- set back would hold too long, and enqueues would notify when no worker is there: it is put right.
        CASE turn / 65536
        WHEN 0 THEN
            IF coalesce(pg_sequence_last_value('rowlock.bell'), 0) = 0 THEN
                PERFORM setval('rowlock.bell', 1);
            END IF;
        WHEN 1 THEN
            IF to_timestamp(coalesce(pg_sequence_last_value('rowlock.asleep'), 0)::float8 / 1000)
                NOT BETWEEN clock_timestamp() + interval '7 s' AND clock_timestamp() + interval '10 s' THEN
                PERFORM setval('rowlock.asleep', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 10000);
            END IF;
        ELSE NULL;
        END CASE;
    END IF;
    IF taken > 0 AND NOT rowlock.worker_lives(to_worker) THEN
        RAISE EXCEPTION 'the worker was given up' USING ERRCODE = 'RL002';
    END IF;
    RETURN QUERY SELECT NULL::smallint, NULL::tid, next_due, NULL::bigint, NULL, NULL, without_bounds::integer::smallint,
        CASE WHEN taken > 0 THEN coalesce((SELECT s.id FROM rowlock.store AS s WHERE s.one), rowlock.store_id())::text END,
        (SELECT count(*)::integer FROM (SELECT 1 FROM rowlock.aside AS a WHERE a.suspect AND a.token IS NULL LIMIT 1) AS s),
        NULL::integer, now, (extract(epoch FROM furthest) * 1000000)::bigint::text,
        stopped_kinds || stopped_queues, NULL, look_aside, NULL,
        CASE WHEN without_bounds THEN unsorted ELSE seen_unsorted END, lowest;
END $$
