-- purpose: stage jobs through any driver: the parameter is text for all of them
SELECT id, status FROM rowlock.stage($1::text)
