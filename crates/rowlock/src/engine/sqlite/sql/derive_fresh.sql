-- purpose: notice a schema that others have changed, which preparing a statement alone doesn't
SELECT EXISTS (SELECT 1 FROM main.sqlite_master)
