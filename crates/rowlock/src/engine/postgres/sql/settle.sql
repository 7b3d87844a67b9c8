-- purpose: apply verdicts, each under its own fence; returns the jobs whose verdict was accepted
-- done, in groups of one segment, claim, kind and queue: where those lie whose work is done
-- verdicts on others: done, fail, cancelled, sent, retry, snooze, release, and of whoever died with a job: expired, or
-- charged if it had begun alone; each job at most once
-- differs: one statement for a whole batch, so that it is accepted as a whole or can be sent again
CREATE FUNCTION rowlock.settle(
    group_sizes integer[], group_segments smallint[], group_tokens bigint[], group_kinds text[], group_queues text[],
    group_keyed boolean[], done_places tid[], done_ids bigint[], done_ago_ms bigint[],
    ids bigint[], tokens bigint[], verdicts text[], began_ago_ms bigint[], wait_ms bigint[], errors_added text[],
    errors_kept integer)
RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    first integer := 1;
    last integer;
    part record;
    every record;
    spots record;
    live record;
    done bigint[] := '{}';
    accepted bigint[] := '{}';
    more bigint[];
BEGIN
    FOR n IN 1..cardinality(group_sizes) LOOP
        last := first + group_sizes[n] - 1;
        SELECT group_tokens[n] AS token, group_kinds[n] AS kind, group_queues[n] AS queue, group_keyed[n] AS keyed,
               done_places[first:last] AS places, done_ids[first:last] AS ids, done_ago_ms[first:last] AS ago INTO part;
        CASE group_segments[n]
        WHEN 0 THEN more := rowlock.settle_done_0(part.token, part.kind, part.queue, part.keyed, part.places, part.ids, part.ago, now);
        WHEN 1 THEN more := rowlock.settle_done_1(part.token, part.kind, part.queue, part.keyed, part.places, part.ids, part.ago, now);
        WHEN 2 THEN more := rowlock.settle_done_2(part.token, part.kind, part.queue, part.keyed, part.places, part.ids, part.ago, now);
        ELSE more := rowlock.settle_done_3(part.token, part.kind, part.queue, part.keyed, part.places, part.ids, part.ago, now);
        END CASE;
        done := done || more;
        first := last + 1;
        -- Not where they were any more: they are looked for with the others.
        IF more IS DISTINCT FROM part.ids THEN
            SELECT array_agg(v.id) AS ids, array_agg(part.token) AS tokens, array_agg('done'::text) AS verdicts, array_agg(v.ago) AS ago,
                   array_agg(NULL::bigint) AS waits, array_agg(NULL::text) AS errors
            INTO every FROM unnest(part.ids, part.ago) AS v (id, ago) WHERE v.id <> ALL (coalesce(more, '{}'));
            ids := ids || every.ids;
            tokens := tokens || every.tokens;
            verdicts := verdicts || every.verdicts;
            began_ago_ms := began_ago_ms || every.ago;
            wait_ms := wait_ms || every.waits;
            errors_added := errors_added || every.errors;
        END IF;
    END LOOP;
    -- A row that is being set aside while we look is there again at the next look.
    FOR look IN 1..3 LOOP
        EXIT WHEN cardinality(accepted) >= cardinality(ids);
        SELECT * INTO spots FROM rowlock.whereabouts(ids, tokens);
        SELECT array_agg(v.id) AS ids, array_agg(v.token) AS tokens, array_agg(v.cancels) AS cancels,
               array_agg(v.verdict) AS verdicts, array_agg(now - v.ago * interval '1 ms') AS began,
               array_agg(v.wait) AS waits, array_agg(v.error::jsonb) AS errors
        INTO live
        FROM unnest(spots.places, spots.cancels, ids, tokens, verdicts, began_ago_ms, wait_ms, errors_added)
            AS v (place, cancels, id, token, verdict, ago, wait, error)
        WHERE v.place IS NOT NULL;
        CONTINUE WHEN live.ids IS NULL AND look = 1;
        EXIT WHEN live.ids IS NULL;
        SELECT array_agg(v.id) AS ids, array_agg(v.token) AS tokens, array_agg(v.began) AS began,
               -- What somebody wants cancelled gets no other attempt.
               array_agg(CASE v.verdict WHEN 'done' THEN 'completed' WHEN 'fail' THEN 'failed'
                                        WHEN 'sent' THEN NULL ELSE 'cancelled' END) AS states,
               array_agg(v.error) AS errors
        INTO every
        FROM unnest(live.ids, live.tokens, live.verdicts, live.began, live.errors, live.cancels)
            AS v (id, token, verdict, began, error, cancels)
        WHERE v.verdict IN ('done', 'fail', 'cancelled', 'sent') OR v.cancels;
        IF every.ids IS NOT NULL THEN
            accepted := accepted || ARRAY (SELECT rowlock.settle_finish(
                every.ids, every.tokens, every.states, every.began, every.errors, errors_kept, now));
        END IF;
        SELECT array_agg(v.id) AS ids, array_agg(v.token) AS tokens, array_agg(v.wait) AS waits,
               array_agg(CASE WHEN v.verdict IN ('retry', 'charged') THEN 0 ELSE 1 END) AS given_back,
               array_agg(CASE WHEN v.verdict = 'release' THEN NULL ELSE v.verdict IN ('expired', 'charged') END) AS suspects,
               array_agg(v.error) AS errors
        INTO every
        FROM unnest(live.ids, live.tokens, live.verdicts, live.waits, live.errors, live.cancels)
            AS v (id, token, verdict, wait, error, cancels)
        WHERE v.verdict IN ('retry', 'snooze', 'release', 'expired', 'charged') AND NOT v.cancels;
        IF every.ids IS NOT NULL THEN
            accepted := accepted || ARRAY (SELECT rowlock.settle_again(every.ids, every.tokens, every.waits,
                every.given_back, every.suspects, every.errors, errors_kept, now));
        END IF;
    END LOOP;
    RETURN QUERY SELECT unnest(done || accepted);
END $$
