-- purpose: holders of running jobs that have no row of their own, because somebody removed it
-- A route's drain writes its row again.
SELECT DISTINCT locked_by FROM rowlock_job INDEXED BY rowlock_job_running
WHERE state = 'processing' AND locked_by IS NOT NULL AND locked_by NOT GLOB 'drain:*'
  AND locked_by NOT IN (SELECT id FROM rowlock_worker)
