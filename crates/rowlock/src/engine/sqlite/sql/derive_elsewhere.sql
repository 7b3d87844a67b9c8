-- purpose: the next rows of a pair's query by key, each with its payload, where there are no jobs
-- ?1 limit, from ?2 on the cursor
SELECT {pieces}, json_object({fields})
FROM (
{query}
) AS q
{after}
ORDER BY {columns} LIMIT ?1
