-- purpose: how long a key is held back the n-th time in a row: four times longer each time, a day at most
CREATE FUNCTION rowlock.hold_back(first_ms bigint, n integer) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT least(first_ms * power(4::double precision, least(n - 1, 20)), 86400000) * interval '1 ms' $$
