-- purpose: a kind that has changed may not be plain any more
CREATE FUNCTION rowlock.kind_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.plain := false;
    RETURN NEW;
END $$
