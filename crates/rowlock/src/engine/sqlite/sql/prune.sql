-- purpose: remove ended jobs whose time is over at ?1, at most ?2, oldest first
-- moves: prune completed -> none
-- moves: prune failed -> none
-- moves: prune cancelled -> none
DELETE FROM rowlock_history WHERE id IN (
    SELECT id FROM rowlock_history INDEXED BY rowlock_history_expiry
    WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
