-- purpose: kinds and queues of jobs in the hands of workers, among the first ?1 of them
-- Routes hold more than anybody runs.
SELECT DISTINCT kind, queue FROM (
    SELECT kind, queue FROM rowlock_job INDEXED BY rowlock_job_running WHERE state = 'processing' AND locked_by < 'drain:'
    UNION ALL
    SELECT kind, queue FROM rowlock_job INDEXED BY rowlock_job_running WHERE state = 'processing' AND locked_by >= 'drain;'
    LIMIT ?1)
