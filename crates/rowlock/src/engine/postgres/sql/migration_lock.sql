-- purpose: one process migrates at a time
SELECT pg_advisory_xact_lock(hashtext('rowlock.migrate'), 0)
