-- purpose: the column that an index begins with; $1 its schema, $2 its name
SELECT a.attname::text FROM pg_index AS i
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indexrelid = to_regclass(quote_ident($1) || '.' || quote_ident($2))
