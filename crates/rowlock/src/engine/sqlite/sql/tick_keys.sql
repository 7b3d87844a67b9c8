-- purpose: whether anything is known of keys of pair ?1
SELECT EXISTS (SELECT 1 FROM main.rowlock_pair_key WHERE pair = ?1)
