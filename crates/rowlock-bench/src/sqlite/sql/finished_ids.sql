-- purpose: the next job's id comes after those of ?1 finished ones
INSERT INTO sqlite_sequence (name, seq) VALUES ('rowlock_job', ?1)
