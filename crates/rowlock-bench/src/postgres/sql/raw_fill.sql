-- purpose: the live rows of ours, and their keys
INSERT INTO bench.raw SELECT * FROM bench.job;
INSERT INTO bench.raw_key SELECT * FROM bench.key;
VACUUM ANALYZE bench.raw;
VACUUM ANALYZE bench.raw_key
