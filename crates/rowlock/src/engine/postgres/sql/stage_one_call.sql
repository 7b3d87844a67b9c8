-- purpose: stage one plain job through any driver: the parameter is text for all of them
SELECT id, status FROM rowlock.stage_one($1::text)
