-- purpose: stage one plain job through any driver: the parameter is text for all of them
SELECT rowlock.stage_plain($1::text) AS answer
