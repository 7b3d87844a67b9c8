-- purpose: the names of a query's columns, without running it
SELECT json_object_keys(row_to_json(one)) FROM (
    SELECT wanted_row.* FROM (SELECT 1) AS always LEFT JOIN (SELECT * FROM (
{query}
) AS every_row LIMIT 0) AS wanted_row ON true) AS one
