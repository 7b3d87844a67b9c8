-- purpose: whether somebody still leads: ?1 duty ?2 name ?3 shard ?4 token
SELECT EXISTS (SELECT 1 FROM main.rowlock_post WHERE duty = ?1 AND name = ?2 AND shard = ?3 AND token = ?4)
