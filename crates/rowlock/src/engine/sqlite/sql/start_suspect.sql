-- purpose: remember which suspect job a worker runs, while the claim holds
UPDATE rowlock_worker SET suspect_id = ?2, suspect_token = ?3
WHERE id = ?1 AND EXISTS (
    SELECT 1 FROM rowlock_job WHERE id = ?2 AND token = ?3 AND locked_by = ?1 AND state = 'processing')
