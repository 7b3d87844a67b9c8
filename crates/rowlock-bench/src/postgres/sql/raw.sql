CREATE TABLE bench.raw (LIKE bench.job, PRIMARY KEY (id)) WITH (fillfactor = 45);
CREATE INDEX raw_ready ON bench.raw (queue, kind, priority, ready_at, id) WITH (deduplicate_items = off);
CREATE TABLE bench.raw_history (LIKE bench.history, PRIMARY KEY (id));
CREATE TABLE bench.raw_key (LIKE bench.key, PRIMARY KEY (kind, unique_key));
CREATE SEQUENCE bench.raw_id
