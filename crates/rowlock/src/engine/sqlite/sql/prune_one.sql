-- purpose: remove one ended job, because it was asked for or because it has been redriven
-- moves: prune completed -> none
-- moves: prune failed -> none
-- moves: prune cancelled -> none
DELETE FROM rowlock_history WHERE id = ?1
