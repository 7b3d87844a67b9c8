-- purpose: what the schema consists of, each thing with what makes it itself
SELECT 'table ' || c.relname AS thing,
       md5(string_agg(format('%s %s %s', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull), ', ' ORDER BY a.attname)) AS content
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind IN ('r', 'p', 'v')
  -- Places of budgets come and stay with their classes.
  AND NOT starts_with(c.relname, 'place_')
GROUP BY c.relname
UNION ALL
SELECT 'index ' || c.relname, md5(format('%s %s %s', i.indisunique, i.indisvalid, (
           SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n) FROM generate_series(1, i.indnatts) AS n)))
FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'rowlock'::regnamespace
UNION ALL
SELECT 'sequence ' || c.relname, '' FROM pg_class AS c
WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind = 'S'
UNION ALL
-- A function that older programs call stays beside its newer form: both are one thing.
SELECT 'function ' || p.proname, md5(string_agg(
           p.prosrc || p.prosecdef || coalesce(array_to_string(p.proconfig, ','), ''), '' ORDER BY p.proargtypes::text))
FROM pg_proc AS p WHERE p.pronamespace = 'rowlock'::regnamespace
GROUP BY p.proname
UNION ALL
SELECT 'trigger ' || t.tgname, md5(pg_get_triggerdef(t.oid) || t.tgenabled::text)
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'rowlock'::regnamespace AND NOT t.tgisinternal
ORDER BY 1
