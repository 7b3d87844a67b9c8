-- operators: safe while workers run
-- purpose: faster claims and single enqueues
-- What older workers and applications call stays beside its newer form.

-- Whether a job of this kind that says nothing else may be staged without another look: it has no key and no switch, nor
-- has its queue, and its lane is known. False is always safe; note_plain finds out again.
ALTER TABLE rowlock.kind ADD COLUMN plain boolean NOT NULL DEFAULT false;

-- By triggers, so that whoever writes to these tables can't forget it.
CREATE FUNCTION rowlock.kind_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.plain := false;
    RETURN NEW;
END $$;
CREATE TRIGGER kind_changed BEFORE UPDATE ON rowlock.kind FOR EACH ROW
WHEN (NEW.plain AND (NEW.queue <> OLD.queue OR NEW.priority <> OLD.priority OR NEW.switch IS NOT NULL OR NEW.key_fields <> '{}'))
EXECUTE FUNCTION rowlock.kind_changed();

-- Under the lock of note_plain, which may be reading what this transaction has not committed yet.
CREATE FUNCTION rowlock.queue_switched() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('rowlock.plain'), 0);
    UPDATE rowlock.kind SET plain = false WHERE queue = NEW.queue AND plain;
    RETURN NULL;
END $$;
CREATE TRIGGER queue_switched AFTER INSERT OR UPDATE OF switch ON rowlock.queue FOR EACH ROW
WHEN (NEW.switch IS NOT NULL) EXECUTE FUNCTION rowlock.queue_switched();
