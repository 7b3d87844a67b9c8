-- purpose: claimed jobs whose work is done leave nothing, because their retention is zero
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- differs: nothing of the completed jobs is kept
-- ?1 [[id, token, ...], ...] of those that settle_done left
DELETE FROM main.rowlock_job WHERE id IN (
    SELECT job.id FROM json_each(?1) AS done
    CROSS JOIN main.rowlock_job AS job ON job.id = done.value ->> 0
    WHERE job.token = done.value ->> 1 AND job.state = 'processing')
RETURNING id
