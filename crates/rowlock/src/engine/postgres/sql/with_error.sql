-- purpose: a job's errors with one more, the oldest going first
CREATE FUNCTION rowlock.with_error(errors jsonb, error jsonb, kept integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
SELECT CASE WHEN error IS NULL THEN errors
            WHEN coalesce(jsonb_array_length(errors), 0) < kept THEN coalesce(errors, '[]') || jsonb_build_array(error)
            ELSE (coalesce(errors, '[]') - 0) || jsonb_build_array(error) END
$$
