-- The columns of a live job in one table, with the indexes that such a table needs.
CREATE TABLE bench.plain (LIKE bench.job INCLUDING DEFAULTS, PRIMARY KEY (id)) WITH (fillfactor = 45);
CREATE INDEX plain_ready ON bench.plain (queue, kind, priority, ready_at, id);
CREATE UNIQUE INDEX plain_key ON bench.plain (kind, unique_key);
