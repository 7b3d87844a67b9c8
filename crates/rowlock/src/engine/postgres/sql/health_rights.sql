-- purpose: what a worker must be allowed and this role isn't
SELECT 'USAGE on the schema ' || n.nspname FROM pg_namespace AS n
WHERE n.nspname = 'rowlock' AND NOT has_schema_privilege(n.oid, 'USAGE')
UNION ALL
SELECT need.verb || ' on ' || c.relname
FROM pg_class AS c CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS need (verb)
WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind IN ('r', 'p')
  AND CASE WHEN c.relname IN ('migration', 'schema_part') THEN need.verb = 'SELECT'
           WHEN need.verb = 'TRUNCATE' THEN c.relname ~ '^(job|history)_[0-9]+$' ELSE true END
  AND NOT has_table_privilege(c.oid, need.verb)
UNION ALL
SELECT need.verb || ' on ' || c.relname
FROM pg_class AS c CROSS JOIN (VALUES ('SELECT'), ('UPDATE')) AS need (verb)
WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind = 'S' AND NOT has_sequence_privilege(c.oid, need.verb)
UNION ALL
SELECT 'EXECUTE on ' || p.proname FROM pg_proc AS p
WHERE p.pronamespace = 'rowlock'::regnamespace AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1
