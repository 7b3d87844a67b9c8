-- purpose: pending jobs of kinds that have no row
SELECT job.kind, count(*) FROM rowlock.job
WHERE job.token IS NULL AND NOT EXISTS (SELECT 1 FROM rowlock.kind AS k WHERE k.kind = job.kind)
GROUP BY job.kind ORDER BY job.kind
