-- purpose: which rule a job breaks by what few calls carry, in words; nothing when it breaks none
-- The library checks the same rules before it asks. declared: only where it counts, as the kind has no row.
CREATE FUNCTION rowlock.stage_rare_problem(
    due timestamptz, delay_ms bigint, trace_context text, backoff json, declared json) RETURNS text
LANGUAGE sql STABLE AS $$
SELECT CASE
    WHEN delay_ms < 0
        THEN 'delay_ms must not be negative'
    WHEN due NOT BETWEEN '4713-01-02 BC' AND '9999-12-30'
        THEN 'scheduled_at must be a time before the year 10000'
    WHEN trace_context COLLATE "C" !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
        THEN 'trace_context is not a W3C traceparent: 00-<32 hex digits>-<16>-<2>'
    WHEN backoff IS NOT NULL AND NOT coalesce(
        octet_length(backoff::text) <= 65536
        AND CASE json_typeof(backoff) WHEN 'object' THEN
            NOT EXISTS (SELECT 1 FROM json_object_keys(backoff) AS field
                        WHERE field NOT IN ('kind', 'base', 'max', 'jitter', 'delays'))
            AND coalesce(json_typeof(backoff -> 'jitter'), 'number') = 'number'
            AND coalesce(backoff ->> 'max', '1s') COLLATE "C" ~ '^(0|([0-9]+ ?[A-Za-z]+ ?)+)$'
            AND CASE WHEN backoff ->> 'kind' IN ('linear', 'exponential', 'fixed')
                     THEN backoff ->> 'base' COLLATE "C" ~ '^(0|([0-9]+ ?[A-Za-z]+ ?)+)$'
                     WHEN backoff ->> 'kind' = 'custom' AND json_typeof(backoff -> 'delays') = 'array'
                     THEN NOT EXISTS (SELECT 1 FROM json_array_elements_text(backoff -> 'delays') AS wait
                                      WHERE coalesce(wait, '') COLLATE "C" !~ '^(0|([0-9]+ ?[A-Za-z]+ ?)+)$') END END, false)
        THEN 'backoff is not a retry policy such as {"kind": "fixed", "base": "30s"}'
    WHEN json_typeof(declared) <> 'object'
        THEN 'declared must be an object'
    WHEN declared ->> 'queue' COLLATE "C" !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$'
        THEN 'queue is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _'
    WHEN (declared ->> 'priority')::numeric NOT BETWEEN -32768 AND 32767
        THEN 'priority must be an integer from -32768 to 32767'
    WHEN (declared ->> 'max_attempts')::numeric NOT BETWEEN 1 AND 1000000
        THEN 'max_attempts must be an integer from 1 to 1000000'
    WHEN declared ->> 'unique_until' NOT IN ('start', 'finished')
        THEN 'unique_until must be start or finished'
    WHEN coalesce(json_typeof(declared -> 'key'), 'array') NOT IN ('array', 'null') OR EXISTS (
        SELECT 1 FROM json_array_elements_text(
            CASE json_typeof(declared -> 'key') WHEN 'array' THEN declared -> 'key' ELSE '[]' END) AS field
        WHERE coalesce(field, '') COLLATE "C" !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$')
        THEN 'a field of the key is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _'
END
$$
