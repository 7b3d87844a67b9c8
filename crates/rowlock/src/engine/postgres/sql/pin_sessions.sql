-- purpose: the sessions of this database that hold a snapshot or the number of a transaction
-- Those of other databases pin nothing here. Of somebody else's a role without pg_monitor sees that it is there, and no more. A parallel worker is its leader's, a walsender is listed as a standby or a slot.
SELECT a.pid, a.application_name, a.usename::text, a.query, a.state,
       (extract(epoch FROM rowlock.now() - coalesce(a.xact_start, a.backend_start)) * 1000)::bigint,
       greatest(age(a.backend_xmin), age(a.backend_xid))::bigint, a.backend_type, coalesce(r.rolsuper, true),
       coalesce((extract(epoch FROM coalesce(a.xact_start, a.backend_start)) * 1000000)::bigint, 0),
       has_table_privilege(a.usesysid, 'rowlock.job_0', 'DELETE')
FROM pg_stat_activity AS a LEFT JOIN pg_roles AS r ON r.oid = a.usesysid
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
  AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
  AND coalesce(a.backend_type, '') NOT IN ('walsender', 'parallel worker')
