-- purpose: rows of a query with their keys, in the order of their keys; after 32 MiB without their payloads
SELECT w.key, CASE WHEN w.before <= 33554432 THEN w.payload END
FROM (SELECT w.key, w.payload, coalesce(sum(octet_length(w.payload))
          OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
      FROM (SELECT w.key, row_to_json(w.q)::text AS payload FROM (
{wanted}
) AS w) AS w) AS w
