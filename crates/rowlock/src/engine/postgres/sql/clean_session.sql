-- purpose: end what a rollback leaves in a session: advisory locks of the session, and statements that were prepared
-- by SQL. Those that drivers and poolers prepare are theirs.
CREATE FUNCTION rowlock.clean_session() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    prepared text;
BEGIN
    PERFORM pg_catalog.pg_advisory_unlock_all();
    FOR prepared IN SELECT p.name FROM pg_catalog.pg_prepared_statements AS p WHERE p.from_sql LOOP
        EXECUTE pg_catalog.format('DEALLOCATE %I', prepared);
    END LOOP;
END $$
