-- purpose: whose locks keep closed segments from being emptied: transactions that are older than a minute
-- A role that may not see how old somebody else's is hears of it when the segment has become large.
SELECT segment.n, segment.bytes, l.pid, coalesce(p.gid, max(a.application_name)),
       (extract(epoch FROM rowlock.now() - coalesce(p.prepared, max(a.xact_start))) * 1000)::bigint
FROM (SELECT n, format('rowlock.job_%s', n)::regclass AS relation,
             pg_relation_size(format('rowlock.job_%s', n)::regclass) AS bytes FROM generate_series(0, 3) AS n) AS segment
JOIN pg_locks AS l ON l.locktype = 'relation' AND l.relation = segment.relation AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN pg_locks AS x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'
    AND x.virtualtransaction = l.virtualtransaction
LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid
WHERE segment.bytes > 0 AND segment.n <> (SELECT last_value % 8 FROM rowlock.ring)
  AND l.pid IS DISTINCT FROM pg_backend_pid()
GROUP BY segment.n, segment.bytes, l.pid, p.gid, p.prepared
HAVING coalesce(rowlock.now() - coalesce(p.prepared, max(a.xact_start)) > interval '1 min', segment.bytes > 268435456)
ORDER BY segment.n, l.pid
