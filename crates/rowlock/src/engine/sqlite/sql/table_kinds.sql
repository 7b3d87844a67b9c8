-- purpose: whose file this is: our tables, our version table, somebody else's tables
SELECT sum(name = 'rowlock_job'), sum(name = 'rowlock_migration'),
       sum(name NOT LIKE 'rowlock\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\')
FROM main.sqlite_master WHERE type IN ('table', 'view')
