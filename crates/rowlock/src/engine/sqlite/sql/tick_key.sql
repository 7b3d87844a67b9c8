-- purpose: whether key ?2 of pair ?1 is held back at ?3; no row: nothing is known of it
SELECT reason <> 'done' AND coalesce(not_before > ?3, 1)
FROM main.rowlock_pair_key WHERE pair = ?1 AND key = ?2
