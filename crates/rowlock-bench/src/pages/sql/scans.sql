-- purpose: how often somebody has read a large table from its beginning to its end, and how many rows and entries of indexes of such
SELECT coalesce(sum(t.seq_scan), 0)::bigint, coalesce(sum(t.seq_tup_read + coalesce(i.entries, 0)), 0)::bigint
FROM pg_stat_user_tables AS t
LEFT JOIN (SELECT relid, sum(idx_tup_read) AS entries FROM pg_stat_user_indexes GROUP BY relid) AS i ON i.relid = t.relid
WHERE t.schemaname = $1 AND t.n_live_tup >= $2
