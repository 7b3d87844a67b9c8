-- purpose: which rule a job to be staged breaks, in words; nothing when it breaks none
-- The library checks the same rules before it asks.
CREATE FUNCTION rowlock.stage_problem(
    kind text, payload text, queue text, priority bigint, scheduled_at timestamptz,
    max_attempts bigint, unique_key text, unique_until text, tags text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    name CONSTANT text := '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$';
    rule CONSTANT text := ' is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _';
BEGIN
    IF kind IS NULL OR kind COLLATE "C" !~ name THEN RETURN 'kind' || rule; END IF;
    IF queue COLLATE "C" !~ name THEN RETURN 'queue' || rule; END IF;
    IF octet_length(payload) > 1048576 THEN
        RETURN 'the payload has more than 1048576 bytes: store large data elsewhere and pass a reference';
    END IF;
    -- An escaped backslash before u0000 is text; anything else there is a NUL.
    IF strpos(payload, '\u0000') > 0 AND strpos(replace(payload, '\\', ''), '\u0000') > 0 THEN
        RETURN 'the payload has a NUL character (\u0000), which can''t be stored';
    END IF;
    -- Only when there are brackets enough to be too deep.
    IF length(payload) > 256
        AND length(payload) - length(translate(payload, '[{', '')) > 128
        AND rowlock.depth(payload::json) > 128 THEN
        RETURN 'the payload nests deeper than 128 levels';
    END IF;
    IF length(payload) > 308 AND payload ~ '[0-9]{155}[0-9]{154}' AND jsonb_path_exists(payload::jsonb,
        '$.** ? (@.type() == "number" && (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308))') THEN
        RETURN 'a number of the payload is out of range';
    END IF;
    IF priority NOT BETWEEN -32768 AND 32767 THEN
        RETURN 'priority must be an integer from -32768 to 32767';
    END IF;
    IF max_attempts NOT BETWEEN 1 AND 1000000 THEN
        RETURN 'max_attempts must be an integer from 1 to 1000000';
    END IF;
    IF scheduled_at NOT BETWEEN '4713-01-02 BC' AND '9999-12-30' THEN
        RETURN 'scheduled_at must be a time before the year 10000';
    END IF;
    IF octet_length(unique_key) NOT BETWEEN 1 AND 65536 THEN
        RETURN 'unique_key must be text of 1 to 65536 bytes';
    END IF;
    IF unique_until NOT IN ('start', 'finished') THEN RETURN 'unique_until must be start or finished'; END IF;
    IF EXISTS (SELECT 1 FROM unnest(tags) AS tag WHERE tag IS NULL OR tag COLLATE "C" !~ name) THEN
        RETURN 'a tag' || rule;
    END IF;
    RETURN NULL;
END $$
