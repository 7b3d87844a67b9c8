-- operators: safe while workers run
-- purpose: ends of jobs with a unique key that stay fast while a transaction stays open
-- What workers and applications of schema 3 to 5 call stays. While the index is made nobody writes to the keys: enqueues,
-- claims and ends of jobs with a key wait, for up to five seconds, and are tried again. With millions of live keys make it
-- beforehand: CREATE INDEX CONCURRENTLY key_holder ON rowlock.key (id).

-- A key that is used again and again leaves a dead row each time. Whoever looks for it by its name walks past all of them;
-- by its holder, whose number never comes again, past none.
CREATE INDEX IF NOT EXISTS key_holder ON rowlock.key (id);
