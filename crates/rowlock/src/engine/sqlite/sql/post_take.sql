-- purpose: take a post that is still as it was seen
-- ?1 duty ?2 name ?3 shard ?4 new token ?5 holder ?6 seen token or NULL ?7 seen beat
UPDATE rowlock_post SET token = ?4, beat = 0, holder = ?5
WHERE duty = ?1 AND name = ?2 AND shard = ?3 AND token IS ?6 AND beat = ?7
