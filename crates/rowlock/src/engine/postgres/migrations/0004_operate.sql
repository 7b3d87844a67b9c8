-- operators: safe while workers run
-- purpose: faster verdicts, and what operators set: workload classes, and how many transactions of each may run at once
-- What older workers and applications call stays beside its newer form.

CREATE TABLE rowlock.budget (
    class text PRIMARY KEY,
    max integer NOT NULL CHECK (max BETWEEN 1 AND 1000),
    match json NOT NULL DEFAULT '{}'
);
