-- purpose: holders of running jobs that have no row of their own, because somebody removed it
-- A route is below zero, and never given up.
SELECT DISTINCT job.worker FROM rowlock.job
WHERE job.worker IS NOT NULL AND job.worker > 0 AND NOT EXISTS (SELECT 1 FROM rowlock.worker AS w WHERE w.number = job.worker)
