-- purpose: a claimed job waits for another attempt
-- moves: settle_retry processing -> pending
-- moves: settle_snooze processing -> pending
-- moves: release processing -> pending
-- moves: expire processing -> pending
-- A job that somebody wants cancelled gets no other attempt: it ends by settle_finish instead.
-- ?1 id ?2 token ?3 scheduled_at or NULL ?4 attempt given back ?5 suspect or NULL ?6 error or NULL ?7 errors kept
UPDATE rowlock_job
SET state = 'pending', locked_by = NULL, token = NULL,
    scheduled_at = coalesce(?3, scheduled_at),
    attempt = attempt - ?4,
    suspect = coalesce(?5, suspect),
    errors = CASE WHEN ?6 IS NULL THEN errors
                  WHEN json_array_length(errors) < ?7 THEN json_insert(errors, '$[#]', json(?6))
                  ELSE json_insert(json_remove(errors, '$[0]'), '$[#]', json(?6)) END
WHERE id = ?1 AND token = ?2 AND state = 'processing' AND NOT cancel_requested
