-- purpose: complete a job through any driver, in the caller's transaction
SELECT rowlock.complete($1::smallint, $2::bigint, $3::bigint, $4::bigint) AS done
