-- purpose: the next rows of a pair's query by key, each with its payload or 3: JSON can't hold it;
-- where there are no jobs
-- ?1 limit, from ?2 on the cursor
SELECT {pieces}, CASE WHEN 'blob' IN ({types}) THEN 3 ELSE json_object({fields}) END
FROM (
{query}
) AS q
{after}
ORDER BY {order} LIMIT ?1
