-- purpose: keys that a pair's ticks leave alone, or left alone once
SELECT key, reason, not_before, n FROM rowlock.pair_key
WHERE pair = $1 AND key > coalesce($2, '') ORDER BY key LIMIT $3
