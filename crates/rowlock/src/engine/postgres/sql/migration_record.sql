-- purpose: remember what the schema consists of, so that a change behind our back shows
INSERT INTO rowlock.schema_part (thing, content) VALUES ($1, $2)
ON CONFLICT (thing) DO UPDATE SET content = EXCLUDED.content
