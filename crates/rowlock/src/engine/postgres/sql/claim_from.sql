-- purpose: lock the due jobs of one level of a queue in one segment, lane by lane, oldest first: their places
-- differs: rows that a rival has locked are skipped; a bound says where each lane's scan begins
-- Finding out that a row is locked costs as much as locking it, so what a rival has touched is passed by its xmax first. A
-- rival that was rolled back leaves one behind as well: such rows are left to lanes without a bound.
CREATE FUNCTION rowlock.claim_{s}(
    at_queue text, at_priority smallint, kinds text[], times timestamptz[], ids bigint[],
    quota integer, room integer, now timestamptz)
RETURNS tid[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    places tid[];
    frees boolean;
BEGIN
    SELECT array_agg(due.place), bool_or(due.frees) INTO places, frees
    FROM (SELECT due.place, due.frees
          FROM unnest(kinds, times, ids) AS lane (kind, ready_at, id)
          CROSS JOIN LATERAL (
              SELECT job.ctid AS place, job.until_start AND job.unique_key IS NOT NULL AS frees
              FROM rowlock.job_{s} AS job
              WHERE job.queue = at_queue AND job.kind = lane.kind AND job.priority = at_priority
                AND (job.ready_at, job.id) > (lane.ready_at, lane.id) AND job.ready_at <= now
                AND job.token IS NULL AND (job.xmax = '0'::xid OR lane.ready_at = '-infinity')
              ORDER BY job.ready_at, job.id LIMIT quota
              FOR UPDATE SKIP LOCKED) AS due
          LIMIT room) AS due;
    IF frees THEN
        DELETE FROM rowlock.key WHERE key.id = ANY (ARRAY (
            SELECT job.id FROM rowlock.job_{s} AS job WHERE job.ctid = ANY (places) AND job.until_start));
    END IF;
    RETURN places;
END $$
