-- purpose: what a route holds and was set aside, by rising id
-- $1 holder $2 after $3 limit
SELECT sent.id, sent.token, (extract(epoch FROM rowlock.now() - sent.started_at) * 1000)::bigint, sent.attempt,
       sent.max_attempts, coalesce(sent.backoff, k.backoff)::text, sent.suspect
FROM (SELECT * FROM rowlock.aside AS a
      WHERE a.worker = (SELECT w.number FROM rowlock.worker AS w WHERE w.id = $1) AND a.id > $2
      ORDER BY a.id LIMIT $3) AS sent
LEFT JOIN rowlock.kind AS k ON k.kind = sent.kind
ORDER BY sent.id
