-- purpose: so many jobs of the textbook's queue at once; $1 payload $2 how many
INSERT INTO bench.textbook (payload) SELECT $1::text::jsonb FROM generate_series(1, $2::bigint)
