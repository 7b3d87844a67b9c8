-- purpose: remove the row of a route that holds nothing; whether there was one
CREATE FUNCTION rowlock.forget_route(holder text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
    route CONSTANT bigint := (SELECT w.number FROM rowlock.worker AS w WHERE w.id = holder);
BEGIN
    -- Claims of this route that are under way end first, and the next statement sees what they took; a later one finds
    -- it gone.
    PERFORM 1 FROM rowlock.worker AS w WHERE w.number = route FOR UPDATE;
    DELETE FROM rowlock.worker AS w
    WHERE w.number = route AND NOT EXISTS (SELECT 1 FROM rowlock.job WHERE job.worker = route);
    RETURN FOUND;
END $$
