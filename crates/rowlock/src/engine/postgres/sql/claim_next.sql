-- purpose: when the next job of these lanes is due in one segment
CREATE FUNCTION rowlock.claim_next_{s}(queues text[], kinds text[], priorities smallint[], now timestamptz)
RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT min(later.ready_at)
            FROM unnest(queues, kinds, priorities) AS lane (queue, kind, priority)
            CROSS JOIN LATERAL (
                SELECT job.ready_at FROM rowlock.job_{s} AS job
                WHERE job.queue = lane.queue AND job.kind = lane.kind AND job.priority = lane.priority
                  AND job.ready_at > now AND job.token IS NULL
                ORDER BY job.ready_at LIMIT 1) AS later);
END $$
