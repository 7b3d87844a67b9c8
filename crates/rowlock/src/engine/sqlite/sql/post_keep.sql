-- purpose: a leader lives: ?1 duty ?2 name ?3 shard ?4 token
UPDATE rowlock_post SET beat = beat + 1 WHERE duty = ?1 AND name = ?2 AND shard = ?3 AND token = ?4
