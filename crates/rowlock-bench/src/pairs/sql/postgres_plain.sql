-- $1 kind $2 after this id $3 at most
WITH made AS (
    INSERT INTO bench.plain
    SELECT nextval('bench.job_id'), now(), now(), now(), NULL, NULL, NULL, 0, 5, 0, false, false, false, false,
           'default', $1, '[' || d.id || ']', NULL, NULL, NULL, NULL, row_to_json(d)
    FROM (SELECT id FROM bench.databases WHERE state = 'pending' AND id > $2 ORDER BY id LIMIT $3) AS d
    RETURNING unique_key
)
SELECT count(*), max(substr(unique_key, 2, length(unique_key) - 2)::bigint) FROM made
