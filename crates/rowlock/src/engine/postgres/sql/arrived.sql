-- purpose: after jobs have come back: add their lanes, tell claims to begin anew if need be, ring the bell
CREATE FUNCTION rowlock.arrived(lanes rowlock.lane[], earliest timestamptz, now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF lanes IS NULL THEN
        RETURN;
    END IF;
    IF earliest < now - interval '25 ms' THEN
        PERFORM nextval('rowlock.unsorted');
    END IF;
    INSERT INTO rowlock.lane
    SELECT lane.* FROM unnest(lanes) AS lane
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                      WHERE l.queue = lane.queue AND l.kind = lane.kind AND l.priority = lane.priority);
    IF rowlock.must_notify() THEN
        PERFORM rowlock.notify();
    END IF;
END $$
