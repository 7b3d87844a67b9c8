-- purpose: every pair at ?1, with how all its shards are doing together
SELECT p.name, p.declared, p.declared_at, p.ineffective, p.uncovered,
       p.switch, p.switch_reason, p.switch_by, p.switch_until,
       CASE WHEN count(post.last_success) = count(post.shard) THEN min(post.last_success) END,
       max(post.last_took_ms), sum(post.last_found), sum(post.last_enqueued), sum(post.lost),
       sum(post.ticks), max(post.error), max(CASE WHEN post.shard = 0 THEN post.holder END),
       (SELECT count(*) FROM rowlock_pair_key AS key
        WHERE key.pair = p.name AND key.reason <> 'done' AND coalesce(key.not_before > ?1, 1))
FROM rowlock_pair AS p
LEFT JOIN rowlock_post AS post ON post.duty = 'pair' AND post.name = p.name
GROUP BY p.name
ORDER BY p.name
