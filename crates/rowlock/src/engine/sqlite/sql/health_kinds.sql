-- purpose: pending jobs of kinds that have no row
SELECT job.kind, count(*) FROM rowlock_job AS job
WHERE job.state = 'pending' AND NOT EXISTS (SELECT 1 FROM rowlock_kind AS k WHERE k.kind = job.kind)
GROUP BY job.kind ORDER BY job.kind
