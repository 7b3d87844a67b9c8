-- purpose: whether a user's query has a row with this key, however its values are spelled
SELECT EXISTS (SELECT 1 FROM (
{query}
) AS q
WHERE {matches})
