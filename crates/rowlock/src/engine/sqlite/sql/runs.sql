-- purpose: how long the newest of the ended jobs ran, by falling id: so many rows are read, however many there are
-- ?1 rows to look at
SELECT finished_at, CASE WHEN state <> 'cancelled' THEN finished_at - started_at END
FROM rowlock_history ORDER BY id DESC LIMIT ?1
