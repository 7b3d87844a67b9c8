-- purpose: how deep a JSON text nests, as far as 129 levels
CREATE FUNCTION rowlock.depth(payload json) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
WITH RECURSIVE level (depth, value) AS (
    SELECT CASE WHEN json_typeof(payload) IN ('array', 'object') THEN 1 ELSE 0 END, payload
    UNION ALL
    SELECT level.depth + 1, child.value
    FROM level CROSS JOIN LATERAL (
        SELECT value FROM json_each(CASE WHEN json_typeof(level.value) = 'object' THEN level.value ELSE '{}' END)
        UNION ALL
        SELECT value FROM json_array_elements(CASE WHEN json_typeof(level.value) = 'array' THEN level.value ELSE '[]' END)
    ) AS child
    WHERE json_typeof(child.value) IN ('array', 'object') AND level.depth <= 128)
SELECT max(depth) FROM level
$$
