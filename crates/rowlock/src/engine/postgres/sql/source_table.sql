-- purpose: a table as it has to be written, and its columns; $1 its schema or nothing, $2 its name
SELECT c.oid::regclass::text, array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass(coalesce(quote_ident($1) || '.' || quote_ident($2), $2))
GROUP BY c.oid
