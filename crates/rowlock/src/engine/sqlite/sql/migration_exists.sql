-- purpose: whether the record of what was applied is there
SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = 'rowlock_migration'
