-- operators: safe while workers run
-- purpose: what operators set: workload classes, and how many transactions of each may run at once

CREATE TABLE rowlock.budget (
    class text PRIMARY KEY,
    max integer NOT NULL CHECK (max BETWEEN 1 AND 1000),
    match json NOT NULL DEFAULT '{}'
);
