-- purpose: the one clock of the store: the server's
-- Tests put another body in its place; nothing else may.
CREATE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$
