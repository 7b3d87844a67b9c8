-- operators: safe while workers of schema 3 or 4 run; stop older ones first
-- purpose: faster claims and single enqueues
-- What older workers and applications call stays beside its newer form.

-- Whether a job of this kind that says nothing else may be staged without another look: it has no key and no switch, nor
-- has its queue, and its lane is known. False is always safe; note_plain finds out again. Triggers take it back, so that
-- whoever writes to kinds and queues can't forget it.
ALTER TABLE rowlock.kind ADD COLUMN plain boolean NOT NULL DEFAULT false;
