-- purpose: the replication slots for which old rows are kept, in every database of the server
-- A catalog_xmin alone keeps rows of the catalogue only.
SELECT slot_name::text, active_pid, slot_type || CASE WHEN active THEN ', active' ELSE ', abandoned' END,
       greatest(age(xmin), age(catalog_xmin))::bigint, xmin IS NULL
FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
