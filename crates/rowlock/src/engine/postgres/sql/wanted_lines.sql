-- purpose: rows that were read from another database, as a tick takes them
SELECT rowlock.stage_key(line.payload, {fields}) AS key, line.payload AS q
FROM ROWS FROM (json_to_recordset($11) AS (payload text)) WITH ORDINALITY AS line (payload, n) ORDER BY line.n
