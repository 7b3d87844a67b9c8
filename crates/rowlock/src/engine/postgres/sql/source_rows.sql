-- purpose: rows of a query with their keys, in the order of their keys
SELECT w.key, row_to_json(w.q)::text FROM (
{wanted}
) AS w
