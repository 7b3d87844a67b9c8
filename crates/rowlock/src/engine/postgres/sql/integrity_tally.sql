-- purpose: where the counts of ended jobs differ from the history, at most ten
SELECT queue, state, sum(counted)::bigint, sum(kept)::bigint FROM (
    SELECT queue, state, n AS counted, 0 AS kept FROM rowlock.tally
    UNION ALL
    SELECT queue, state, 0, 1 FROM rowlock.history) AS both_sides
GROUP BY queue, state HAVING sum(counted) <> sum(kept) LIMIT 10
