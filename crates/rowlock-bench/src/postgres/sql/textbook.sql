CREATE TABLE bench.textbook (
    id bigserial PRIMARY KEY,
    run_at timestamptz DEFAULT now(),
    status text DEFAULT 'pending',
    payload jsonb);
CREATE INDEX textbook_fetch ON bench.textbook (run_at) WHERE status = 'pending'
