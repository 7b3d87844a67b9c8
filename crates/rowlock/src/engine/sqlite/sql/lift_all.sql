-- purpose: forget all keys of pair ?1
DELETE FROM rowlock_pair_key WHERE pair = ?1
