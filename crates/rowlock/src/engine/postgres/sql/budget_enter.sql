-- purpose: try to take one of the places of a workload class, for as long as this transaction lives
-- It never waits: a wait in here would hold a snapshot, and pin the horizon itself. No class has no row, no place has
-- no slot. A place is a lock on a view that only our roles can lock. A standby can't lock one, and a copy that logical
-- replication has filled has none before the class is declared there: both keep to advisory locks.
CREATE FUNCTION rowlock.budget_enter(class text, OUT slot integer, OUT max integer)
RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    thing regclass;
BEGIN
    SELECT b.max INTO max FROM rowlock.budget AS b WHERE b.class = $1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR place IN 1 .. max LOOP
        thing := CASE WHEN NOT pg_is_in_recovery() THEN to_regclass(rowlock.budget_place($1, place)) END;
        IF (CASE WHEN thing IS NOT NULL THEN rowlock.try_lock(thing, 'SHARE UPDATE EXCLUSIVE') ELSE
                pg_try_advisory_xact_lock(hashtextextended(format('rowlock.budget %s %s', $1, place), 0)) END) THEN
            slot := place;
            EXIT;
        END IF;
    END LOOP;
    RETURN NEXT;
END $$
