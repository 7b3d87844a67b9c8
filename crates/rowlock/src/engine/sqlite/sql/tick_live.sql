-- purpose: whether a live job of kind ?1 has the key ?2
SELECT EXISTS (SELECT 1 FROM main.rowlock_job INDEXED BY rowlock_job_key
               WHERE kind = ?1 AND unique_key = ?2 AND key_held = 1)
