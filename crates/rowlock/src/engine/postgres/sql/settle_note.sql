-- purpose: a claimed job stays where it is and gets an error: nothing else that is said of it can be written
UPDATE rowlock.job SET errors = rowlock.with_error(errors, $3::text::jsonb, $4) WHERE id = $1 AND token = $2
