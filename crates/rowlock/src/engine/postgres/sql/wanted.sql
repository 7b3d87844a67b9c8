-- purpose: the rows that a pair's query wants, by key; put together for each pair
-- {key}: the key as text; {after}: only rows after a key; {order}: the key's columns
SELECT {key} AS key, wanted_row AS q FROM (
{query}
) AS wanted_row WHERE {after} AND {shard} ORDER BY {order} LIMIT {limit}
