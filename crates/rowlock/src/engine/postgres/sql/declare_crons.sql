-- purpose: write crons and the post of their leader; crons that are there already only with change
-- crons: [{declared, next_at}, ...]; how they were before
CREATE FUNCTION rowlock.declare_crons(crons text, change boolean) RETURNS TABLE (name text, before text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    new record;
    old json;
BEGIN
    FOR new IN
        SELECT w.declared, w.next_at, w.declared ->> 'name' AS name
        FROM json_to_recordset(crons::json) AS w (declared json, next_at timestamptz)
        ORDER BY w.declared ->> 'name' COLLATE "C"
    LOOP
        INSERT INTO rowlock.post (duty, name, shard) VALUES ('cron', '', 0) ON CONFLICT DO NOTHING;
        INSERT INTO rowlock.cron (name, declared, next_at) VALUES (new.name, new.declared, new.next_at)
        ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            old := NULL;
        ELSE
            SELECT c.declared INTO old FROM rowlock.cron AS c WHERE c.name = new.name FOR UPDATE;
        END IF;
        IF old IS NOT NULL AND change THEN
            UPDATE rowlock.cron AS c SET declared = new.declared, next_at = CASE
                WHEN ARRAY[old ->> 'cron', old ->> 'tz'] IS DISTINCT FROM
                     ARRAY[new.declared ->> 'cron', new.declared ->> 'tz'] THEN new.next_at ELSE c.next_at END
            WHERE c.name = new.name AND old::jsonb <> new.declared::jsonb;
        END IF;
        name := new.name;
        before := old::text;
        RETURN NEXT;
    END LOOP;
END $$
