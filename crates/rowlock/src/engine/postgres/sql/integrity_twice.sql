-- purpose: ids that more than one row has, at most ten
SELECT id, count(*) FROM (SELECT id FROM rowlock.job UNION ALL SELECT id FROM rowlock.history) AS stored
GROUP BY id HAVING count(*) > 1 LIMIT 10
