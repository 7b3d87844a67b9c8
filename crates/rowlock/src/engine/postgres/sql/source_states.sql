-- purpose: the values of a state column that nobody claims; $1 all that somebody does
SELECT coalesce(t.{column}::text, 'NULL') AS state, count(*)
FROM {table} AS t WHERE t.{column} IS NULL OR t.{column}::text <> ALL ($1::text[])
GROUP BY 1 ORDER BY 1
