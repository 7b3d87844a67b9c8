-- purpose: the columns of a user's query
SELECT * FROM (
{query}
) AS q
