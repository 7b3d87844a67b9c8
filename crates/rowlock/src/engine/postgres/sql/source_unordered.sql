-- purpose: all rows of a query, in any order
SELECT wanted_row FROM (
{query}
) AS wanted_row
