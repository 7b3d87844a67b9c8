-- purpose: put pending jobs where they belong: into the current segment, or aside when they aren't due soon
CREATE FUNCTION rowlock.put(jobs rowlock.job[], now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(jobs) = 0 OR jobs IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO rowlock.aside SELECT * FROM unnest(jobs) AS job
    WHERE job.held OR job.suspect OR job.ready_at > now + interval '1 min';
    EXECUTE format('INSERT INTO rowlock.job_%s SELECT * FROM unnest($1) AS job
                    WHERE NOT job.held AND NOT job.suspect AND job.ready_at <= $2 + interval ''1 min''',
                   (SELECT last_value % 8 FROM rowlock.ring)) USING jobs, now;
    IF EXISTS (SELECT 1 FROM unnest(jobs) AS job WHERE job.ready_at < now - interval '25 ms') THEN
        PERFORM nextval('rowlock.unsorted');
    END IF;
    INSERT INTO rowlock.lane
    SELECT DISTINCT job.queue, job.kind, job.priority FROM unnest(jobs) AS job
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                      WHERE l.queue = job.queue AND l.kind = job.kind AND l.priority = job.priority);
    IF (SELECT last_value FROM rowlock.bell) = 1 THEN
        PERFORM setval('rowlock.bell', 0);
        PERFORM pg_notify('rowlock.ready', '');
    END IF;
END $$
