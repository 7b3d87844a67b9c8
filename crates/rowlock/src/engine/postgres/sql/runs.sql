-- purpose: how long the newest of the ended jobs ran, by falling id: so many rows are read, however many there are
-- $1 rows to look at
SELECT h.finished_at, CASE WHEN h.state <> 'cancelled' THEN (extract(epoch FROM h.finished_at - h.started_at) * 1000)::bigint END
FROM rowlock.history AS h ORDER BY h.id DESC LIMIT $1
