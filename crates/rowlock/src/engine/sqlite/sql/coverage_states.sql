-- purpose: the values of the state column, with the number of rows
SELECT CAST(t.{column} AS TEXT), count(*) FROM {table} AS t GROUP BY 1 ORDER BY 1
