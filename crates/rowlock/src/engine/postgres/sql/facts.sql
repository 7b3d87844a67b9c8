-- purpose: every job as a checker reads it, live and ended, by rising id
-- $1 after $2 limit
SELECT id, live, state, attempt, max_attempts, token, locked_by, due FROM (
    (SELECT job.id, true AS live, CASE WHEN token IS NULL THEN 'pending' ELSE 'processing' END AS state,
            job.attempt, job.max_attempts, job.token, coalesce(w.id, 'worker ' || job.worker) AS locked_by,
            job.scheduled_at <= clock.now AS due
     FROM rowlock.now() AS clock (now) CROSS JOIN rowlock.job LEFT JOIN rowlock.worker AS w ON w.number = job.worker
     WHERE job.id > $1 ORDER BY job.id LIMIT $2)
    UNION ALL
    (SELECT id, false, state, attempt, max_attempts, NULL, NULL, false
     FROM rowlock.history WHERE id > $1 ORDER BY id LIMIT $2)) AS found
ORDER BY id LIMIT $2
