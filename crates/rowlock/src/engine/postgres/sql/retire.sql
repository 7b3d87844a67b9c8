-- purpose: empty a closed segment: move the few jobs that still wait in it, then truncate it
-- differs: only Postgres has a ring. Running jobs are never moved here: a caller that completes one
-- in its own transaction may have looked already.
CREATE FUNCTION rowlock.retire(segment integer, current integer, now timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    waiting integer;
    running boolean;
    moved record;
BEGIN
    -- Whoever turned the ring before us may have made this one the current one.
    IF segment = (SELECT last_value % 8 FROM rowlock.ring) THEN
        RETURN 'current';
    END IF;
    IF rowlock.set_sent_aside(segment, now) > 0 THEN
        -- Whoever waits for one of them has a lock on the segment.
        RETURN 'moved';
    END IF;
    -- The newest rows are the last to go: as long as enough of them wait, nobody walks over those that have gone.
    EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM rowlock.job_%s WHERE ctid >= $1 LIMIT 2001) AS few', segment)
        INTO waiting
        USING format('(%s,0)', greatest(0, pg_relation_size(format('rowlock.job_%s', segment)::regclass) / current_setting('block_size')::integer - 256))::tid;
    IF waiting > 2000 THEN
        RETURN 'in use';
    END IF;
    EXECUTE format('SELECT count(*), bool_or(token IS NOT NULL) FROM (SELECT token FROM rowlock.job_%s LIMIT 2001) AS few', segment)
        INTO waiting, running;
    IF waiting > 2000 THEN
        RETURN 'in use';
    ELSIF running THEN
        RETURN 'running';
    END IF;
    BEGIN
        -- It waits for writers that haven't committed; the statements below see what they left.
        EXECUTE format('LOCK TABLE rowlock.job_%s IN ACCESS EXCLUSIVE MODE', segment);
        EXECUTE format('SELECT bool_or(token IS NOT NULL) FROM rowlock.job_%s', segment) INTO running;
        IF running THEN
            RETURN 'running';
        END IF;
        EXECUTE format($move$
            WITH waiting AS (
                SELECT id, rowlock.place(ready_at, $1) AS ready_at, scheduled_at, created_at, started_at, token, worker,
                       attempt, job.max_attempts, job.priority, until_start, cancel_requested, suspect,
                       rowlock.is_on(k.switch, k.switch_until, $1, 'hold', 'pause')
                           OR rowlock.is_on(q.switch, q.switch_until, $1, 'hold', 'pause') AS held,
                       job.queue, job.kind, unique_key, tags, trace_context, job.backoff, errors, payload
                FROM rowlock.job_%1$s AS job
                LEFT JOIN rowlock.kind AS k ON k.kind = job.kind
                LEFT JOIN rowlock.queue AS q ON q.queue = job.queue
            ), near AS (
                INSERT INTO rowlock.job_%2$s SELECT * FROM waiting WHERE NOT held AND ready_at <= $1 + interval '1 min'
            ), far AS (
                INSERT INTO rowlock.aside SELECT * FROM waiting WHERE held OR ready_at > $1 + interval '1 min'
            )
            SELECT min(ready_at) AS earliest, array_agg(DISTINCT ROW(queue, kind, priority)::rowlock.lane) AS lanes
            FROM waiting
            $move$, segment, current) INTO moved USING now;
        PERFORM rowlock.arrived(moved.lanes, moved.earliest, now);
        EXECUTE format('TRUNCATE rowlock.job_%s', segment);
        RETURN 'retired';
    EXCEPTION WHEN lock_not_available THEN
        RETURN 'busy';
    WHEN unique_violation THEN
        -- Two jobs of one number, as after a copy without sequences: one has to end first.
        RETURN 'in use';
    END;
END $$
