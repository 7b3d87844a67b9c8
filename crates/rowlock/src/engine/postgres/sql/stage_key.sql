-- purpose: the key of a payload: the named fields' values as a JSON array; nothing when one is missing
CREATE FUNCTION rowlock.stage_key(payload text, fields text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN count(value) = cardinality(fields) THEN '[' || string_agg(value::text, ',' ORDER BY n) || ']' END
FROM (SELECT n, CASE WHEN jsonb_typeof(payload::jsonb) = 'object' THEN payload::jsonb -> field END AS value
      FROM unnest(fields) WITH ORDINALITY AS f (field, n)) AS named
$$
