-- purpose: cron ?1 goes on to ?3 if its next tick is still ?2
UPDATE rowlock_cron SET next_at = ?3 WHERE name = ?1 AND next_at = ?2 AND NOT paused
