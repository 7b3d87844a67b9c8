-- purpose: the rows that a pair's query wants, by key; put together for each pair
-- {key}: the key as text; {whole}: only rows that have one; {after}: only rows after a key; {order}: its columns
SELECT {key} AS key, wanted_row AS q FROM (
{query}
) AS wanted_row WHERE {whole} AND {after} AND {shard} ORDER BY {order} LIMIT {limit}
