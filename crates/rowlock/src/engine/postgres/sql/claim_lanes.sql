-- purpose: add the lanes that one segment has and the list of lanes lacks
CREATE FUNCTION rowlock.claim_lanes_{s}() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rowlock.lane
    WITH RECURSIVE step AS (
        (SELECT queue, kind, priority FROM rowlock.job_{s} ORDER BY queue, kind, priority LIMIT 1)
        UNION ALL
        SELECT next.* FROM step CROSS JOIN LATERAL (
            SELECT job.queue, job.kind, job.priority FROM rowlock.job_{s} AS job
            WHERE (job.queue, job.kind, job.priority) > (step.queue, step.kind, step.priority)
            ORDER BY job.queue, job.kind, job.priority LIMIT 1) AS next)
    SELECT * FROM step
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                      WHERE l.queue = step.queue AND l.kind = step.kind AND l.priority = step.priority);
END $$
