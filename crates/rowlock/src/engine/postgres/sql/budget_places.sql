-- purpose: make the places of a workload class that are missing
-- Views hold nothing, are neither vacuumed nor published, and can be locked. They stay when the class goes: a
-- transaction may be in one.
CREATE FUNCTION rowlock.budget_places() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    FOR place IN 1 .. NEW.max LOOP
        IF to_regclass(rowlock.budget_place(NEW.class, place)) IS NULL THEN
            EXECUTE format('CREATE VIEW %s AS SELECT 1 AS place', rowlock.budget_place(NEW.class, place));
        END IF;
    END LOOP;
    RETURN NULL;
END $$
