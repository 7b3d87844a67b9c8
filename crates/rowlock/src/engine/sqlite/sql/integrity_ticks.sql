-- purpose: ticks that stand twice, and jobs of more than one tick, at most ten
-- A job with a key may stand for several: it was there already when the later ones came.
SELECT name, tick, NULL AS job_id, count(*) FROM rowlock_cron_tick GROUP BY name, tick HAVING count(*) > 1
UNION ALL
SELECT name, NULL, job_id, ticks FROM (
    SELECT min(name) AS name, job_id, count(*) AS ticks FROM rowlock_cron_tick WHERE job_id IS NOT NULL
    GROUP BY job_id HAVING min(tick) <> max(tick) OR min(name) <> max(name)) AS shared
WHERE EXISTS (SELECT 1 FROM rowlock_job AS j WHERE j.id = shared.job_id AND j.unique_key IS NULL)
   OR EXISTS (SELECT 1 FROM rowlock_history AS h WHERE h.id = shared.job_id AND h.unique_key IS NULL)
LIMIT 10
