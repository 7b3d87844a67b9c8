-- purpose: the worker lives; ?2 is for people, the counter is what others watch
UPDATE rowlock_worker SET beat = beat + 1, seen_at = ?2 WHERE id = ?1
