-- purpose: what a query of the user's answers: it can only read, and nothing of it stays in the session
-- The error that always ends the inner block undoes whatever it did; the rows that it returned are kept.
-- Rows are written and sequences moved by nobody while transaction_read_only is on. STABLE: it sees what the
-- statement sees that asks. The search_path is the caller's, which a tick has put aside: the query may need it.
CREATE FUNCTION rowlock.read_only(asked text) RETURNS SETOF record LANGUAGE plpgsql STABLE AS $$
DECLARE
    answered boolean := false;
    path CONSTANT text := nullif(pg_catalog.current_setting('rowlock.path', true), '');
BEGIN
    IF path IS NOT NULL THEN
        PERFORM pg_catalog.set_config('search_path', path, true);
    END IF;
    PERFORM pg_catalog.set_config('transaction_read_only', 'on', true);
    RETURN QUERY EXECUTE asked;
    -- Before PostgreSQL 16 a function can RESET it.
    IF pg_catalog.current_setting('transaction_read_only') <> 'on' THEN
        RAISE EXCEPTION 'rowlock: a pair''s query may only read: it switched transaction_read_only off'
            USING ERRCODE = 'RL001';
    END IF;
    answered := true;
    RAISE EXCEPTION 'rowlock: read' USING ERRCODE = 'RL004';
-- Also when it is cancelled: behind a pooler the session outlives its client.
EXCEPTION WHEN query_canceled OR OTHERS THEN
    PERFORM rowlock.clean_session();
    IF SQLSTATE IN ('25001', '25006') THEN
        RAISE EXCEPTION 'rowlock: a pair''s query may only read: %', SQLERRM USING ERRCODE = 'RL001';
    ELSIF NOT (answered AND SQLSTATE = 'RL004') THEN
        RAISE;
    END IF;
END $$
