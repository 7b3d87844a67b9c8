-- purpose: count on the posts that are kept, take those that stood still, let go of others; all posts
-- posts: [{act: keep, take or leave, duty, name, shard, token, seen, beat}, ...]
-- Always a row, if only to tell the time.
CREATE FUNCTION rowlock.lead_posts(by_holder text, posts text)
RETURNS TABLE (now timestamptz, duty text, name text, shard integer, token bigint, beat bigint, goes_on text, due_at timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    wish record;
BEGIN
    IF posts <> '[]' THEN
        -- In one order, so that two of these don't wait for each other.
        FOR wish IN
            SELECT w.* FROM json_to_recordset(posts::json) AS w (
                act text, duty text, name text, shard integer, token bigint, seen bigint, beat bigint)
            ORDER BY w.duty COLLATE "C", w.name COLLATE "C", w.shard
        LOOP
            UPDATE rowlock.post AS p SET
                token = CASE wish.act WHEN 'leave' THEN NULL ELSE wish.token END,
                beat = CASE wish.act WHEN 'keep' THEN p.beat + 1 WHEN 'take' THEN 0 ELSE p.beat END,
                holder = CASE wish.act WHEN 'leave' THEN NULL ELSE by_holder END
            WHERE p.duty = wish.duty AND p.name = wish.name AND p.shard = wish.shard
              AND CASE wish.act WHEN 'take' THEN p.token IS NOT DISTINCT FROM wish.seen AND p.beat = wish.beat
                                ELSE p.token = wish.token END;
        END LOOP;
    END IF;
    RETURN QUERY
    SELECT t.now, p.duty, p.name, p.shard, p.token, p.beat, p.cursor, p.due_at
    FROM (SELECT rowlock.now() AS now) AS t LEFT JOIN rowlock.post AS p ON true
    ORDER BY p.duty, p.name, p.shard;
END $$
