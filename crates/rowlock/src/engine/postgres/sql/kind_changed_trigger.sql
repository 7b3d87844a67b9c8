-- purpose: whoever changes a kind, it is noticed
CREATE OR REPLACE TRIGGER kind_changed BEFORE UPDATE ON rowlock.kind FOR EACH ROW
WHEN (NEW.plain AND (NEW.queue <> OLD.queue OR NEW.priority <> OLD.priority OR NEW.switch IS NOT NULL OR NEW.key_fields <> '{}'))
EXECUTE FUNCTION rowlock.kind_changed()
