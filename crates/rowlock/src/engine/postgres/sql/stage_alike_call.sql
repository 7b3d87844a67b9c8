-- purpose: stage jobs that differ in nothing but their payloads through any driver: the parameter is text for all of them
SELECT unnest(rowlock.stage_alike($1::text)) AS answer
