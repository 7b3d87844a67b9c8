-- purpose: one job of the textbook's queue; $1 payload
INSERT INTO bench.textbook (payload) VALUES ($1::text::jsonb)
