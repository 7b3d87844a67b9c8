-- purpose: how much route ?1 holds, counted up to ?2, when a drain of it was heard last, and its lease
SELECT (SELECT count(*) FROM (
            SELECT id FROM rowlock_job INDEXED BY rowlock_job_running WHERE state = 'processing' AND locked_by = ?1 LIMIT ?2)),
       (SELECT seen_at FROM rowlock_worker WHERE id = ?1),
       (SELECT lease_ms FROM rowlock_worker WHERE id = ?1)
