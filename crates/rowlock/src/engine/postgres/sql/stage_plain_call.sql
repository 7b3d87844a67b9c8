-- purpose: stage one plain job through any driver: the parameter is text for all of them
-- $1 {kind, payload, queue, priority, max_attempts, trace_context, declared}, an array as text
SELECT rowlock.stage_plain(job.parts[1], job.parts[2], job.parts[3], job.parts[4]::bigint, job.parts[5]::bigint, job.parts[6], job.parts[7]) AS answer
FROM (SELECT $1::text::text[] AS parts OFFSET 0) AS job
