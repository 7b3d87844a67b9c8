-- purpose: store jobs that differ in nothing but their payloads in one segment; their ids, in the order of the input
-- moves: stage none -> pending
CREATE FUNCTION rowlock.stage_alike_{s}(
    of_kind text, in_queue text, in_priority smallint, attempts integer, until_start boolean, trace text, payloads text[],
    now timestamptz)
RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    ids bigint[];
BEGIN
    WITH stored AS (
        INSERT INTO rowlock.job_{s}
        SELECT nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0, attempts, in_priority, until_start, false, false,
               false, in_queue, of_kind, NULL, NULL, trace, NULL, NULL, coalesce(payload, '{}')::json
        FROM unnest(payloads) AS payload
        RETURNING id)
    SELECT array_agg(id) INTO ids FROM stored;
    RETURN ids;
END $$
