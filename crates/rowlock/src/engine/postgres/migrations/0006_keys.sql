-- operators: safe while workers run
-- purpose: ends of jobs with a unique key that stay fast while a transaction stays open
-- What workers and applications of schema 3 to 5 call stays; enqueues with a key wait while the index is made.

-- A key that is used again and again leaves a dead row each time. Whoever looks for it by its name walks past all of them;
-- by its holder, whose number never comes again, past none.
CREATE INDEX key_holder ON rowlock.key (id);
