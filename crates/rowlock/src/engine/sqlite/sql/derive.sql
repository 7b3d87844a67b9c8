-- purpose: the next rows of a pair's query by key, and of each 1: it has a live job, 2: its key is held back,
-- 3: JSON can't hold it, or its payload
-- ?1 limit ?2 kind ?3 pair ?4 now, from ?5 on the cursor
SELECT {pieces}, CASE
    WHEN EXISTS (SELECT 1 FROM main.rowlock_job AS rowlock_live INDEXED BY rowlock_job_key
                 WHERE rowlock_live.kind = ?2 AND rowlock_live.unique_key = {key}
                   AND rowlock_live.key_held = 1) THEN 1
    WHEN EXISTS (SELECT 1 FROM main.rowlock_pair_key AS rowlock_held
                 WHERE rowlock_held.pair = ?3 AND rowlock_held.key = {key}
                   AND rowlock_held.reason <> 'done' AND coalesce(rowlock_held.not_before > ?4, 1)) THEN 2
    WHEN 'blob' IN ({types}) THEN 3
    ELSE json_object({fields}) END
FROM (
{query}
) AS q
{after}
ORDER BY {order} LIMIT ?1
