-- purpose: ask the holder of a running job to stop; it sees this at its next heartbeat
UPDATE rowlock_job SET cancel_requested = 1 WHERE id = ?1 AND state = 'processing'
