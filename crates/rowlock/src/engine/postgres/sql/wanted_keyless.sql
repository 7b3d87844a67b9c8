-- purpose: how many rows have no key, at most a thousand: where no batch meets them
SELECT count(*) FROM (SELECT 1 FROM (
{query}
) AS wanted_row WHERE {keyless} LIMIT 1000) AS few
