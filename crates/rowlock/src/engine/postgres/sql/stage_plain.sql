-- purpose: store one job that nothing speaks against, in one statement; nothing when it isn't as plain as that
-- moves: stage none -> pending
-- job: kind, payload, queue, priority, max_attempts, trace_context
-- differs: its kind is known, has no key and no switch, nor has its queue; a job has been in its lane before
CREATE FUNCTION rowlock.stage_plain_{s}(job text[]) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- In this order, as in stage_many.
    xid CONSTANT xid8 := pg_current_xact_id();
    now CONSTANT timestamptz := rowlock.now();
    stored bigint;
BEGIN
    INSERT INTO rowlock.job_{s}
    SELECT nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0, coalesce(job[5]::integer, k.max_attempts),
           coalesce(job[4]::smallint, k.priority), k.unique_until = 'start', false, false, false,
           coalesce(job[3], k.queue), k.kind, NULL, NULL, job[6], NULL, NULL, coalesce(job[2], '{}')::json
    FROM rowlock.kind AS k
    WHERE k.kind = job[1] AND k.switch IS NULL AND k.key_fields = '{}'
      AND NOT EXISTS (SELECT 1 FROM rowlock.queue AS q
                      WHERE q.queue = coalesce(job[3], k.queue) AND q.switch IS NOT NULL OFFSET 0)
      AND EXISTS (SELECT 1 FROM rowlock.lane AS l
                  WHERE l.queue = coalesce(job[3], k.queue) AND l.kind = k.kind
                    AND l.priority = coalesce(job[4]::smallint, k.priority) OFFSET 0)
    RETURNING id INTO stored;
    RETURN stored;
END $$
