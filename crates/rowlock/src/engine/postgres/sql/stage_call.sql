-- purpose: stage jobs through any driver: the parameter is text for all of them
-- Answers a number for each: four times the id, and what became of it.
SELECT coalesce(id, 0) * 4 + array_position('{queued,duplicate,held,rejected}', status) - 1 AS answer FROM rowlock.stage($1::text)
