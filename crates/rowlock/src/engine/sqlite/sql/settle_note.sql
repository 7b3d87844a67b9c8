-- purpose: a claimed job stays where it is and gets an error: nothing else that is said of it can be written
-- ?1 id ?2 token ?3 error ?4 errors kept
UPDATE rowlock_job
SET errors = CASE WHEN json_array_length(errors) < ?4 THEN json_insert(errors, '$[#]', json(?3))
                  ELSE json_insert(json_remove(errors, '$[0]'), '$[#]', json(?3)) END
WHERE id = ?1 AND token = ?2 AND state = 'processing'
