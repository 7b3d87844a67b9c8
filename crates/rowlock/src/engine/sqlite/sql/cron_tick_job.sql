-- purpose: note job ?3 of tick ?2 of cron ?1
UPDATE rowlock_cron_tick SET job_id = ?3 WHERE name = ?1 AND tick = ?2
