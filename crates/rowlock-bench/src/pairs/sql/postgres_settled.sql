UPDATE bench.databases SET state = 'ready';
VACUUM ANALYZE bench.databases;
