-- purpose: whether a switch is one of these and has not expired
CREATE FUNCTION rowlock.is_on(switch text, until timestamptz, now timestamptz, VARIADIC modes text[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(switch = ANY (modes) AND coalesce(until > now, true), false) $$
