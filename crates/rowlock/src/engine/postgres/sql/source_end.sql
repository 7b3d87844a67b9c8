-- purpose: undo whatever a query of the user's did, and end what a rollback leaves in the session
-- The same as rowlock.clean_session, where there may be no schema of ours. All within one transaction: after it a pooler
-- may give the session to another client.
ROLLBACK TO SAVEPOINT before_query;
DO $$ DECLARE prepared text; BEGIN
    PERFORM pg_catalog.pg_advisory_unlock_all();
    FOR prepared IN SELECT p.name FROM pg_catalog.pg_prepared_statements AS p WHERE p.from_sql LOOP
        EXECUTE pg_catalog.format('DEALLOCATE %I', prepared);
    END LOOP;
END $$;
COMMIT
