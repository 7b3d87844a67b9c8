-- purpose: the store's own number, which is found once somebody wants to know it
CREATE FUNCTION rowlock.store_id() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM rowlock.store) THEN
        INSERT INTO rowlock.store (id) SELECT ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN (SELECT id FROM rowlock.store);
END $$
