-- purpose: workers, and operators with every verb but migrate: all that happens to a job
GRANT USAGE ON SCHEMA "rowlock" TO "{role}";
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "rowlock" TO "{role}";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "rowlock" TO "{role}";
REVOKE INSERT, UPDATE, DELETE ON rowlock.migration, rowlock.schema_part FROM "{role}";
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA "rowlock" TO "{role}";
-- Segments of the ring and days of the history are locked and truncated as a whole.
DO $$ DECLARE piece regclass; BEGIN
    FOR piece IN SELECT c.oid FROM pg_class AS c
                 WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^(job|history)_[0-9]+$' LOOP
        EXECUTE format('GRANT TRUNCATE ON %s TO "{role}"', piece);
    END LOOP;
END $$
