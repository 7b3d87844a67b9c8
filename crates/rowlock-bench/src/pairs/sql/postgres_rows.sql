CREATE TABLE bench.databases (id bigint PRIMARY KEY, name text NOT NULL, state text NOT NULL);
INSERT INTO bench.databases SELECT id, 'database ' || id, 'pending' FROM generate_series(1, 1000000) AS id;
CREATE INDEX databases_pending ON bench.databases (id) WHERE state = 'pending';
VACUUM ANALYZE bench.databases;
