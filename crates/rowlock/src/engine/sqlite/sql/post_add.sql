-- purpose: a post that is to be led: ?1 duty ?2 name ?3 shard
INSERT INTO rowlock_post (duty, name, shard) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
