-- purpose: which of these jobs are still under these claims
SELECT job.id FROM unnest($1, $2) AS held (id, token)
JOIN rowlock.job ON job.id = held.id AND job.token = held.token
