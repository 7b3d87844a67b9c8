-- purpose: rows in a pending state that the query doesn't return
-- ?1 [state, ...]
SELECT CAST(t.{column} AS TEXT), count(*) FROM {table} AS t
WHERE CAST(t.{column} AS TEXT) IN (SELECT value FROM json_each(?1))
  AND coalesce(({theirs}) NOT IN (SELECT {columns} FROM (
{query}
) AS q WHERE {whole}), 1)
GROUP BY 1 ORDER BY 1
