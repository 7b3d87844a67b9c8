-- purpose: a pair that was changed is due at once, and from its first key on if ?2: ?1 pair
UPDATE rowlock_post SET due_at = NULL, cursor = CASE WHEN ?2 THEN NULL ELSE cursor END
WHERE duty = 'pair' AND name = ?1
