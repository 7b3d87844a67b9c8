-- operators: safe while workers run
-- purpose: faster claims and single enqueues
-- What workers and applications of schema 3 and 4 call stays beside its newer form; those of older ones, whose claim the
-- third step drops, are stopped first.

-- Whether a job of this kind that says nothing else may be staged without another look: it has no key and no switch, nor
-- has its queue, and its lane is known. False is always safe; note_plain finds out again. Triggers take it back, so that
-- whoever writes to kinds and queues can't forget it.
ALTER TABLE rowlock.kind ADD COLUMN plain boolean NOT NULL DEFAULT false;
