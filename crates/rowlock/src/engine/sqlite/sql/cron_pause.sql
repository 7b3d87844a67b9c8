-- purpose: stop cron ?1, or let it go on from ?2
UPDATE rowlock_cron SET paused = ?2 IS NULL, next_at = coalesce(?2, next_at) WHERE name = ?1
