-- purpose: whether the record of what was applied is there
SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = 'migration')
