-- purpose: find out of which kinds a job may be staged without another look, and make their lanes known
-- differs: one at a time, and while nobody switches a queue; otherwise the next one finds out
CREATE FUNCTION rowlock.note_plain() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM rowlock.kind WHERE NOT plain AND key_fields = '{}')
        OR NOT pg_try_advisory_xact_lock(hashtext('rowlock.plain'), 0) THEN
        RETURN;
    END IF;
    INSERT INTO rowlock.lane
    SELECT k.queue, k.kind, k.priority FROM rowlock.kind AS k
    WHERE NOT k.plain AND k.key_fields = '{}'
      AND NOT EXISTS (SELECT 1 FROM rowlock.lane AS l
                      WHERE l.queue = k.queue AND l.kind = k.kind AND l.priority = k.priority);
    UPDATE rowlock.kind AS k SET plain = true
    WHERE NOT k.plain AND k.key_fields = '{}' AND k.switch IS NULL
      AND NOT EXISTS (SELECT 1 FROM rowlock.queue AS q WHERE q.queue = k.queue AND q.switch IS NOT NULL);
END $$
