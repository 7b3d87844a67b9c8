-- purpose: remove a job that nobody has claimed
-- moves: delete pending -> none
DELETE FROM rowlock_job WHERE id = ?1 AND state = 'pending'
