-- purpose: posts that are led no more: ?1 duty ?2 name, from shard ?3 on
DELETE FROM rowlock_post WHERE duty = ?1 AND name = ?2 AND shard >= ?3
