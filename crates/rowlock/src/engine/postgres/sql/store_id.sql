-- purpose: the store's own number; its row is written when it is first asked for
-- A standby finds the same number, a database that was made from a template another one.
CREATE FUNCTION rowlock.store_id() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM rowlock.store) THEN
        INSERT INTO rowlock.store (id)
        SELECT last_value # (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) FROM rowlock.store_seed
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN (SELECT id FROM rowlock.store);
END $$
