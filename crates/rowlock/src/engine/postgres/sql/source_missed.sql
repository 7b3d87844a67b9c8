-- purpose: rows whose state says that they want work, and that the query doesn't return; $1 such states
SELECT t.{column}::text AS state, count(*)
FROM {table} AS t WHERE t.{column}::text = ANY ($1::text[]) AND NOT EXISTS (SELECT 1 FROM (
{query}
) AS wanted_row WHERE {matches})
GROUP BY 1 ORDER BY 1
