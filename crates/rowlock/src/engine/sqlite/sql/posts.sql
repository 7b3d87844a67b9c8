-- purpose: all posts, and who leads
SELECT duty, name, shard, token, beat, cursor, due_at FROM rowlock_post ORDER BY duty, name, shard
