-- purpose: workers, when each was heard last, and how much it holds
SELECT w.id, w.lease_ms, w.joined_at, coalesce(held.n, 0), w.seen_at
FROM rowlock.worker AS w
LEFT JOIN (SELECT worker, count(*) AS n FROM rowlock.job WHERE worker IS NOT NULL GROUP BY worker) AS held
    ON held.worker = w.number
ORDER BY w.joined_at, w.id
