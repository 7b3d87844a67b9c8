-- purpose: where a job of a kind goes if nothing speaks against it: no key, no switch, a known lane; otherwise nothing
CREATE FUNCTION rowlock.stage_known(
    of_kind text, in_queue text, in_priority bigint,
    OUT queue text, OUT priority smallint, OUT max_attempts integer, OUT until_start boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    SELECT l.queue, l.priority, k.max_attempts, k.unique_until = 'start' INTO queue, priority, max_attempts, until_start
    FROM rowlock.kind AS k JOIN rowlock.lane AS l
        ON l.kind = k.kind AND l.queue = coalesce(in_queue, k.queue) AND l.priority = coalesce(in_priority, k.priority)
    WHERE k.kind = of_kind AND k.switch IS NULL AND k.key_fields = '{}'
      AND NOT EXISTS (SELECT 1 FROM rowlock.queue AS q WHERE q.queue = l.queue AND q.switch IS NOT NULL)
    LIMIT 1;
END $$
