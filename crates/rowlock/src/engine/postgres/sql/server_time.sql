-- purpose: what time it is
SELECT rowlock.now()
