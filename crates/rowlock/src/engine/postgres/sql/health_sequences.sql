-- purpose: sequences that would give out numbers that are stored already, as after a copy without them
SELECT name, highest, latest FROM (
    SELECT 'job_id' AS name, s.last_value AS latest, s.is_called, (
        SELECT max(id) FROM (
            SELECT max(id) AS id FROM rowlock.job UNION ALL SELECT max(id) FROM rowlock.history) AS stored) AS highest
    FROM rowlock.job_id AS s) AS sequence
WHERE highest > latest - CASE WHEN is_called THEN 0 ELSE 1 END
ORDER BY name
