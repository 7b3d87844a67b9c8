-- purpose: how many rows have no key, at most a thousand: no batch after the first meets them
SELECT count(*) FROM (SELECT 1 FROM (
{query}
) AS wanted_row WHERE {keyless} LIMIT 1000) AS few
