-- purpose: give back what a worker holds under other tokens than these, or one row of it
-- moves: release processing -> pending
-- moves: settle_cancelled processing -> cancelled
-- moves: expire processing -> pending
-- moves: expire processing -> failed
-- moves: expire processing -> cancelled
-- of_id: NULL for all of them. died: the worker is dead, so that each comes back marked, and the suspect alone pays: it
-- waits wait_ms and remembers the error, or fails after its last attempt.
-- Not what is being settled, or completed in a transaction that is still open.
CREATE FUNCTION rowlock.return_rows(
    of_id bigint, of_worker bigint, but_tokens bigint[], died boolean, suspect bigint, with_token bigint, wait_ms bigint,
    error text, errors_kept integer, now timestamptz, OUT returned integer, OUT ended integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held record;
BEGIN
    SELECT array_agg(id) FILTER (WHERE cancel_requested) AS cancelled_ids,
           array_agg(token) FILTER (WHERE cancel_requested) AS cancelled_tokens,
           array_agg('cancelled'::text) FILTER (WHERE cancel_requested) AS cancelled,
           array_agg(id) FILTER (WHERE NOT cancel_requested AND NOT pays) AS ids,
           array_agg(token) FILTER (WHERE NOT cancel_requested AND NOT pays) AS tokens,
           array_agg(1) FILTER (WHERE NOT cancel_requested AND NOT pays) AS ones,
           array_agg(true) FILTER (WHERE NOT cancel_requested AND NOT pays AND died) AS marks,
           array_agg(id) FILTER (WHERE NOT cancel_requested AND pays) AS paying_ids,
           array_agg(token) FILTER (WHERE NOT cancel_requested AND pays) AS paying_tokens,
           bool_or(last) FILTER (WHERE NOT cancel_requested AND pays) AS last
    INTO held
    FROM (SELECT job.id, job.token, job.cancel_requested, job.attempt >= job.max_attempts AS last,
                 coalesce(job.id = return_rows.suspect AND job.token = with_token, false) AS pays
          FROM rowlock.job
          WHERE job.worker = of_worker AND job.token <> ALL (but_tokens) AND (of_id IS NULL OR job.id = of_id)
          ORDER BY job.id FOR UPDATE SKIP LOCKED) AS job;
    ended := (SELECT count(*) FROM rowlock.settle_finish(
        held.cancelled_ids, held.cancelled_tokens, held.cancelled, '{}', '{}', errors_kept, now));
    returned := (SELECT count(*) FROM rowlock.settle_again(
        held.ids, held.tokens, '{}', held.ones, held.marks, '{}', errors_kept, now));
    IF held.paying_ids IS NOT NULL AND held.last THEN
        ended := ended + (SELECT count(*) FROM rowlock.settle_finish(
            held.paying_ids, held.paying_tokens, '{failed}', '{}', ARRAY[error::jsonb], errors_kept, now));
    ELSIF held.paying_ids IS NOT NULL THEN
        returned := returned + (SELECT count(*) FROM rowlock.settle_again(
            held.paying_ids, held.paying_tokens, ARRAY[wait_ms], '{0}', '{true}', ARRAY[error::jsonb], errors_kept, now));
    END IF;
END $$
