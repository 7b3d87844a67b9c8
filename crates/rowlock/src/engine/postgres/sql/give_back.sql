-- purpose: give back what a worker holds under other tokens than these; how many jobs
-- moves: release processing -> pending
-- moves: settle_cancelled processing -> cancelled
CREATE FUNCTION rowlock.give_back(of_worker bigint, but_tokens bigint[], now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    held_rows record;
BEGIN
    SELECT array_agg(job.id) FILTER (WHERE NOT job.cancel_requested) AS ids,
           array_agg(job.token) FILTER (WHERE NOT job.cancel_requested) AS tokens,
           array_agg(1) FILTER (WHERE NOT job.cancel_requested) AS ones,
           array_agg(job.id) FILTER (WHERE job.cancel_requested) AS cancelled_ids,
           array_agg(job.token) FILTER (WHERE job.cancel_requested) AS cancelled_tokens,
           array_agg('cancelled'::text) FILTER (WHERE job.cancel_requested) AS cancelled
    INTO held_rows
    -- Not what is being settled, or completed in a transaction that is still open.
    FROM (SELECT job.id, job.token, job.cancel_requested FROM rowlock.job
          WHERE job.worker = of_worker AND job.token <> ALL (but_tokens)
          ORDER BY job.id FOR UPDATE SKIP LOCKED) AS job;
    RETURN (SELECT count(*) FROM rowlock.settle_again(held_rows.ids, held_rows.tokens, '{}', held_rows.ones, '{}', '{}', 0, now))
         + (SELECT count(*) FROM rowlock.settle_finish(held_rows.cancelled_ids, held_rows.cancelled_tokens, held_rows.cancelled, '{}', '{}', 0, now));
END $$
