-- purpose: write a workload class as declared
INSERT INTO rowlock.budget (class, max, match) VALUES ($1, $2, $3::json)
ON CONFLICT (class) DO UPDATE SET max = excluded.max, match = excluded.match
