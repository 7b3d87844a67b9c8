-- purpose: why a job was not stored: a field of its key is missing, or who holds the key, or a switch
-- ?1 kind ?2 payload ?3 unique_key ?4 declared key_fields
SELECT (SELECT field.value FROM json_each(s.key_fields) AS field
        WHERE ?3 IS NULL AND json_type(?2, '$."' || field.value || '"') IS NULL LIMIT 1),
       (SELECT job.id FROM main.rowlock_job AS job
        WHERE job.kind = ?1 AND job.key_held = 1 AND job.unique_key = coalesce(?3,
               (SELECT '[' || group_concat(CASE json_type(?2, '$."' || field.value || '"')
                    WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null'
                    WHEN 'object' THEN json_extract(?2, '$."' || field.value || '"')
                    WHEN 'array' THEN json_extract(?2, '$."' || field.value || '"')
                    -- Digits as written: beyond 64 bits two numbers would become one.
                    WHEN 'integer' THEN ?2 -> ('$."' || field.value || '"')
                    WHEN 'real' THEN ?2 -> ('$."' || field.value || '"')
                    ELSE json_quote(json_extract(?2, '$."' || field.value || '"')) END, ',') || ']'
                FROM json_each(s.key_fields) AS field)))
FROM (SELECT coalesce(k.key_fields, ?4, '[]') AS key_fields
      FROM (SELECT 1) LEFT JOIN main.rowlock_kind AS k ON k.kind = ?1) AS s
