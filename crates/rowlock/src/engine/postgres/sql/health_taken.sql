-- purpose: what there is only so much of, when it is used up: places of a budget, room for notifications, connections
-- Of somebody else's session a role without pg_monitor doesn't see since when. A notification waits for every session
-- that listens, and the oldest open transactions are where one that doesn't read is to be found. A place of a class
-- is a view, or where there can be none an advisory lock: see budget_enter.
WITH place AS (
    SELECT b.class, b.max, n,
           CASE WHEN NOT pg_is_in_recovery() THEN
               to_regclass(format('rowlock.place_%s_%s', to_hex(hashtextextended(b.class, 0)), n)) END AS thing,
           hashtextextended(format('rowlock.budget %s %s', b.class, n), 0) AS key
    FROM rowlock.budget AS b, generate_series(1, b.max) AS n
), held AS (
    SELECT place.class, place.max, place.n, l.pid, a.usename AS role, a.application_name AS application, p.gid,
           p.owner, rowlock.now() - coalesce(p.prepared, a.xact_start, a.state_change) AS age
    FROM place JOIN pg_locks AS l ON l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND CASE WHEN thing IS NOT NULL THEN l.locktype = 'relation' AND l.relation = thing
                     AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                                    'AccessExclusiveLock')
                 ELSE l.locktype = 'advisory' AND l.objsubid = 1
                     AND (l.classid::bigint << 32 | l.objid::bigint) = key END
    LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    LEFT JOIN pg_locks AS x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'
        AND x.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid
), client AS (
    SELECT a.pid, a.usename AS role, a.application_name AS application, a.xact_start, a.backend_start
    FROM pg_stat_activity AS a
    WHERE a.backend_type = 'client backend' OR a.backend_type IS NULL AND a.usename IS NOT NULL
), room AS (
    SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
               - coalesce(current_setting('reserved_connections', true), '0')::bigint AS slots
)
(SELECT 'place' AS what, class, max::bigint, pid, coalesce(role, owner)::text, coalesce(gid, application), count(*),
        (extract(epoch FROM min(age)) * 1000)::bigint
 FROM held WHERE class IN (
     SELECT class FROM held GROUP BY class, max HAVING count(DISTINCT n) = max
         AND coalesce(min(age) > interval '1 min', true))
 GROUP BY class, max, pid, role, owner, gid, application ORDER BY class, min(n), pid)
UNION ALL
(SELECT 'notification', NULL, (usage * 100)::bigint, pid, role::text, application, 1,
        (extract(epoch FROM rowlock.now() - xact_start) * 1000)::bigint
 FROM pg_notification_queue_usage() AS usage LEFT JOIN client ON xact_start IS NOT NULL AND pid <> pg_backend_pid()
 WHERE usage > 0.5 ORDER BY xact_start LIMIT 3)
UNION ALL
(SELECT 'connection', NULL, slots, NULL, role::text, application, count(*),
        (extract(epoch FROM rowlock.now() - min(backend_start)) * 1000)::bigint
 FROM client, room WHERE (SELECT count(*) FROM client) > slots
 GROUP BY role, application, slots ORDER BY count(*) DESC, role, application LIMIT 3)
