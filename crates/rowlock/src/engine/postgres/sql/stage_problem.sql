-- purpose: which rule a job to be staged breaks, in words; nothing when it breaks none
-- The library checks the same rules before it asks.
-- One expression, so that it is a part of the statement instead of a call for each job.
CREATE FUNCTION rowlock.stage_problem(
    kind text, payload text, queue text, priority bigint, scheduled_at timestamptz,
    max_attempts bigint, unique_key text, unique_until text, tags text[]) RETURNS text
LANGUAGE sql STABLE AS $$
SELECT CASE
    WHEN kind COLLATE "C" !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$'
        THEN 'kind is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _'
    WHEN queue COLLATE "C" !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$'
        THEN 'queue is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _'
    WHEN octet_length(payload) > 1048576
        THEN 'the payload has more than 1048576 bytes: store large data elsewhere and pass a reference'
    -- An escaped backslash before u0000 is text; anything else there is a NUL.
    WHEN strpos(payload, E'\\u0000') > 0 AND strpos(replace(payload, E'\\\\', ''), E'\\u0000') > 0
        THEN E'the payload has a NUL character (\\u0000), which can''t be stored'
    -- Only when there are brackets enough to be too deep.
    WHEN length(payload) > 256
        AND length(payload) - length(translate(payload, '[{', '')) > 128
        AND rowlock.depth(payload::json) > 128
        THEN 'the payload nests deeper than 128 levels'
    WHEN length(payload) > 308 AND payload ~ '[0-9]{155}[0-9]{154}' AND jsonb_path_exists(payload::jsonb,
        '$.** ? (@.type() == "number" && (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308))')
        THEN 'a number of the payload is out of range'
    WHEN priority NOT BETWEEN -32768 AND 32767
        THEN 'priority must be an integer from -32768 to 32767'
    WHEN max_attempts NOT BETWEEN 1 AND 1000000
        THEN 'max_attempts must be an integer from 1 to 1000000'
    WHEN scheduled_at NOT BETWEEN '4713-01-02 BC' AND '9999-12-30'
        THEN 'scheduled_at must be a time before the year 10000'
    WHEN octet_length(unique_key) NOT BETWEEN 1 AND 65536
        THEN 'unique_key must be text of 1 to 65536 bytes'
    WHEN unique_until NOT IN ('start', 'finished')
        THEN 'unique_until must be start or finished'
    -- As text a list has quotes around whatever is no name, and around the name NULL.
    WHEN tags::text COLLATE "C" !~ '^[{][}]?(([A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}|"[Nn][Uu][Ll][Ll]")[,}])*$'
        OR array_position(tags, NULL) IS NOT NULL
        THEN 'a tag is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _'
END
$$
