-- purpose: a job that ends without success holds its key back, for every pair of its kind
-- Longer each time in a row: four times as long, at most a day. A cancelled one until it is lifted.
-- No tick asks for a key that no row can have: those are arrays.
-- ?1 id ?2 token or NULL of a pending job ?3 failed or cancelled ?4 now
INSERT INTO main.rowlock_pair_key (pair, key, reason, not_before, n)
SELECT p.name, job.unique_key, ?3,
       CASE ?3 WHEN 'failed' THEN ?4 + min(p.hold_back_ms, 86400000) END, 1
FROM main.rowlock_job AS job
CROSS JOIN main.rowlock_pair AS p ON p.kind = job.kind
WHERE job.id = ?1 AND job.token IS ?2 AND job.unique_key LIKE '[%]' AND p.hold_back_ms > 0
ON CONFLICT (pair, key) DO UPDATE SET
    reason = excluded.reason,
    n = CASE WHEN reason = excluded.reason THEN n + 1 ELSE 1 END,
    not_before = CASE excluded.reason WHEN 'failed' THEN
        ?4 + min(86400000, (excluded.not_before - ?4)
                 << (CASE WHEN reason = 'failed' THEN 2 * min(n, 15) ELSE 0 END)) END
