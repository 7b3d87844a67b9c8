-- purpose: publications that send the ring to their subscribers, and what leaves it out of each
-- What is published of everything can't leave a table out: it is made again, of the other schemas.
SELECT p.pubname, CASE
    WHEN p.puballtables THEN format('BEGIN; DROP PUBLICATION %1$I; CREATE PUBLICATION %1$I%2$s%3$s; COMMIT',
        p.pubname, (
        SELECT CASE WHEN current_setting('server_version_num')::integer >= 150000
                    THEN ' FOR TABLES IN SCHEMA ' || string_agg(DISTINCT format('%I', t.schemaname), ', ')
                    ELSE ' FOR TABLE ' || string_agg(format('%I.%I', t.schemaname, t.tablename), ', ') END
        FROM pg_publication_tables AS t WHERE t.pubname = p.pubname AND t.schemaname <> 'rowlock'),
        format(' WITH (publish = %L, publish_via_partition_root = %s)', concat_ws(', ',
            CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,
            CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END), p.pubviaroot::text))
    WHEN EXISTS (SELECT 1 FROM pg_publication_rel AS r JOIN pg_class AS c ON c.oid = r.prrelid
                 WHERE r.prpubid = p.oid AND c.relnamespace = 'rowlock'::regnamespace) THEN (
        SELECT format('ALTER PUBLICATION %I DROP TABLE %s', p.pubname, string_agg(c.oid::regclass::text, ', '))
        FROM pg_publication_rel AS r JOIN pg_class AS c ON c.oid = r.prrelid
        WHERE r.prpubid = p.oid AND c.relnamespace = 'rowlock'::regnamespace)
    ELSE format('ALTER PUBLICATION %I DROP TABLES IN SCHEMA %I', p.pubname, 'rowlock')
END AS remedy
FROM pg_publication AS p
WHERE current_setting('wal_level') = 'logical'
  AND EXISTS (SELECT 1 FROM pg_publication_tables AS t
              WHERE t.pubname = p.pubname AND t.schemaname = 'rowlock' AND t.tablename ~ '^job_[0-9]+$')
ORDER BY p.pubname
