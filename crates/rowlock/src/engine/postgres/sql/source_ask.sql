-- purpose: which keys a query still returns
SELECT asked.n FROM unnest({keys}) WITH ORDINALITY AS asked ({names}, n)
WHERE EXISTS (SELECT 1 FROM (
{query}
) AS wanted_row WHERE {matches})
