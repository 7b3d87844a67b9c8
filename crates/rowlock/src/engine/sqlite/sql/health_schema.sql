-- purpose: our tables, indexes, views and triggers, with their text
SELECT type, name, sql FROM sqlite_master
WHERE name LIKE 'rowlock\_%' ESCAPE '\' AND sql IS NOT NULL
