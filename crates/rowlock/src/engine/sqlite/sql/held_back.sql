-- purpose: keys of pair ?1 that ticks leave alone or left alone once, after ?2, at most ?3
SELECT key, reason, not_before, n FROM rowlock_pair_key
WHERE pair = ?1 AND key > ?2 ORDER BY key LIMIT ?3
