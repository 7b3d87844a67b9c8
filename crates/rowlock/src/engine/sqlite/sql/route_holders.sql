-- purpose: routes that hold jobs
WITH RECURSIVE holder (id) AS (
    SELECT min(locked_by) FROM rowlock_job INDEXED BY rowlock_job_running
    WHERE state = 'processing' AND locked_by > 'drain:' AND locked_by < 'drain;'
    UNION ALL
    SELECT (SELECT min(locked_by) FROM rowlock_job INDEXED BY rowlock_job_running
            WHERE state = 'processing' AND locked_by > holder.id AND locked_by < 'drain;')
    FROM holder WHERE holder.id IS NOT NULL)
SELECT substr(id, length('drain:') + 1) FROM holder WHERE id IS NOT NULL
