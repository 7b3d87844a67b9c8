-- purpose: a row wants the work that was done: noted the first time, held back from the second on
-- A row that has a live job already may want something new: nothing is said of it.
-- ?1 pair ?2 key ?3 now
INSERT INTO rowlock_pair_key (pair, key, reason, not_before, n)
SELECT name, ?2, 'done', ?3, 1 FROM rowlock_pair AS pair WHERE name = ?1
  AND NOT EXISTS (SELECT 1 FROM rowlock_job AS live
                  WHERE live.kind = pair.kind AND live.unique_key = ?2 AND live.key_held = 1)
ON CONFLICT (pair, key) DO UPDATE SET
    reason = CASE WHEN reason IN ('done', 'ineffective') THEN 'ineffective' ELSE 'done' END,
    n = CASE reason WHEN 'ineffective' THEN n + 1 ELSE 1 END,
    not_before = CASE WHEN reason IN ('done', 'ineffective') THEN
        ?3 + min(86400000, (SELECT min(86400000, hold_back_ms) FROM rowlock_pair WHERE name = ?1)
                 << (CASE reason WHEN 'ineffective' THEN 2 * min(n, 15) ELSE 0 END))
        ELSE ?3 END
WHERE reason IN ('done', 'ineffective') OR not_before <= ?3
RETURNING reason = 'ineffective'
