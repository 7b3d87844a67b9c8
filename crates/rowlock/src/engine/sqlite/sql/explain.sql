-- purpose: how SQLite would run a statement
EXPLAIN QUERY PLAN
{statement}
