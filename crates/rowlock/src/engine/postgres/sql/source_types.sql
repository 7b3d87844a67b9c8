-- purpose: the types of some of a query's columns, without running it
SELECT ARRAY[{types}] FROM (SELECT 1) AS always LEFT JOIN (SELECT * FROM (
{query}
) AS every_row LIMIT 0) AS wanted_row ON true
