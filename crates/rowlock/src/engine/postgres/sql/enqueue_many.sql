-- purpose: stage an array of jobs from any language; rows in the order of the input
CREATE FUNCTION rowlock.enqueue_many(jobs jsonb) RETURNS TABLE (id bigint, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    element jsonb;
    index bigint := 0;
    unknown text;
BEGIN
    IF jsonb_typeof(jobs) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'rowlock: jobs must be an array of objects' USING ERRCODE = 'RL001';
    END IF;
    FOR element IN SELECT value FROM jsonb_array_elements(jobs) LOOP
        IF jsonb_typeof(element) <> 'object' THEN
            RAISE EXCEPTION 'rowlock: job % of the array is not an object', index + 1
                USING ERRCODE = 'RL001', DETAIL = index;
        END IF;
        SELECT field INTO unknown FROM jsonb_object_keys(element) AS field
        WHERE field NOT IN ('kind', 'payload', 'queue', 'priority', 'scheduled_at', 'max_attempts',
                            'unique_key', 'unique_until', 'tags') LIMIT 1;
        IF unknown IS NOT NULL THEN
            RAISE EXCEPTION 'rowlock: job % of the array has an unknown field "%"', index + 1, unknown
                USING ERRCODE = 'RL001', DETAIL = index;
        END IF;
        index := index + 1;
    END LOOP;
    RETURN QUERY SELECT staged.id, staged.status FROM rowlock.stage((
        SELECT coalesce(jsonb_agg(CASE WHEN value ? 'payload'
            THEN jsonb_set(value, '{payload}', to_jsonb((value -> 'payload')::text)) ELSE value END ORDER BY n), '[]')
        FROM jsonb_array_elements(jobs) WITH ORDINALITY AS x (value, n))::text) AS staged;
END $$
