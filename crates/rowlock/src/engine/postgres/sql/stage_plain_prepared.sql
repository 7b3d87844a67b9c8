-- purpose: stage one plain job by a statement that a session has prepared
-- $1 kind $2 payload $3 queue $4 priority $5 max_attempts $6 trace_context $7 declared
SELECT rowlock.stage_plain($1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::text, $7::text) AS answer
