-- purpose: the view that stands for one place of a workload class: a class's name may be too long to be a part of one
CREATE FUNCTION rowlock.budget_place(class text, place integer) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT format('rowlock.place_%s_%s', to_hex(hashtextextended($1, 0)), $2) $$
