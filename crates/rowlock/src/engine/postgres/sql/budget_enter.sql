-- purpose: try to take one of the places of a workload class, for as long as this transaction lives
-- It never waits: a wait in here would hold a snapshot, and pin the horizon itself. No class has no row, no place has no slot.
CREATE FUNCTION rowlock.budget_enter(class text, OUT slot integer, OUT max integer)
RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT b.max INTO max FROM rowlock.budget AS b WHERE b.class = $1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR place IN 1 .. max LOOP
        IF pg_try_advisory_xact_lock(hashtextextended(format('rowlock.budget %s %s', $1, place), 0)) THEN
            slot := place;
            EXIT;
        END IF;
    END LOOP;
    RETURN NEXT;
END $$
