-- purpose: find out of which kinds a job may be staged without another look, and make their lanes known
-- differs: one at a time, while nobody switches a queue, and only of kinds that nobody is changing; the next one finds out
-- what is left. First the rows are locked, then they are looked at: a row that was waited for would be judged by its
-- queue of before.
CREATE FUNCTION rowlock.note_plain() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    names text[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed'
        OR NOT EXISTS (SELECT 1 FROM rowlock.kind WHERE NOT plain AND key_fields = '{}')
        OR NOT rowlock.try_lock('rowlock.queue', 'SHARE') THEN
        RETURN;
    END IF;
    names := ARRAY (SELECT kind FROM rowlock.kind WHERE NOT plain AND key_fields = '{}' AND switch IS NULL
                    ORDER BY kind FOR UPDATE SKIP LOCKED);
    INSERT INTO rowlock.lane
    SELECT k.queue, k.kind, k.priority FROM rowlock.kind AS k
    WHERE k.kind = ANY (names)
      AND NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                      WHERE l.queue = k.queue AND l.kind = k.kind AND l.priority = k.priority);
    UPDATE rowlock.kind AS k SET plain = true
    WHERE k.kind = ANY (names)
      AND NOT EXISTS (SELECT 1 FROM rowlock.queue AS q WHERE q.queue = k.queue AND q.switch IS NOT NULL);
END $$
