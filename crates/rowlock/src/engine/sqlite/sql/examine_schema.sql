-- purpose: the user's tables, views and indexes, to try an index out somewhere else
SELECT sql FROM main.sqlite_master
WHERE sql IS NOT NULL AND type IN ('table', 'view', 'index') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY type = 'table' DESC, type = 'view' DESC, rowid
