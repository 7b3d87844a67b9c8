-- purpose: apply verdicts, each under its own fence; returns the jobs whose verdict was accepted
-- verdicts: done, fail, cancelled, sent, retry, snooze, release, and of whoever died with a job: expired, or
-- charged if it had begun alone; each job at most once
-- differs: one statement for a whole batch, so that it is accepted as a whole or can be sent again
CREATE FUNCTION rowlock.settle(
    segments smallint[], places tid[], ids bigint[], tokens bigint[], verdicts text[], began_ago_ms bigint[],
    wait_ms bigint[], errors_added text[], errors_kept integer)
RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    -- Most calls: all done, in one segment, in the order of their ids.
    alike CONSTANT boolean := coalesce('done' = ALL (verdicts) AND segments[1] = ALL (segments), false);
    every record;
    spots record;
    live record;
    accepted bigint[] := '{}';
    more bigint[];
BEGIN
    FOR every IN
        SELECT segments[1] AS segment, places, ids, tokens, began_ago_ms AS ago WHERE alike
        UNION ALL
        SELECT v.segment, array_agg(v.place ORDER BY v.id), array_agg(v.id ORDER BY v.id),
               array_agg(v.token ORDER BY v.id), array_agg(v.ago ORDER BY v.id)
        FROM unnest(segments, places, ids, tokens, verdicts, began_ago_ms) AS v (segment, place, id, token, verdict, ago)
        WHERE NOT alike AND v.verdict = 'done' AND v.segment IS NOT NULL GROUP BY v.segment ORDER BY segment
    LOOP
        CASE every.segment
        WHEN 0 THEN more := rowlock.settle_done_0(every.places, every.ids, every.tokens, every.ago, now);
        WHEN 1 THEN more := rowlock.settle_done_1(every.places, every.ids, every.tokens, every.ago, now);
        WHEN 2 THEN more := rowlock.settle_done_2(every.places, every.ids, every.tokens, every.ago, now);
        ELSE more := rowlock.settle_done_3(every.places, every.ids, every.tokens, every.ago, now);
        END CASE;
        accepted := accepted || more;
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
    RETURN QUERY SELECT unnest(accepted);
END $$
