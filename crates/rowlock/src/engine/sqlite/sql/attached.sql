-- purpose: whether the caller's main database has our tables, and how it syncs
SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = 'rowlock_job'),
       (SELECT synchronous FROM main.pragma_synchronous)
