-- purpose: stop a cron, or with $2 let it go on from there
UPDATE rowlock.cron SET paused = $2 IS NULL, next_at = coalesce($2, next_at) WHERE name = $1
