-- purpose: whoever switches a queue, it is noticed
CREATE OR REPLACE TRIGGER queue_switched AFTER INSERT OR UPDATE ON rowlock.queue FOR EACH ROW
WHEN (NEW.switch IS NOT NULL) EXECUTE FUNCTION rowlock.queue_switched()
