-- purpose: set a switch, or clear it (mode NULL), and count anew; whether there was something to set or clear
CREATE FUNCTION rowlock.set_switch(of_target text, of_name text, mode text, reason text, by_whom text, until timestamptz)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    done boolean;
BEGIN
    IF mode IS NOT NULL AND of_target = 'kind' THEN
        INSERT INTO rowlock.kind (kind) VALUES (of_name) ON CONFLICT DO NOTHING;
    ELSIF mode IS NOT NULL AND of_target = 'queue' THEN
        INSERT INTO rowlock.queue (queue) VALUES (of_name) ON CONFLICT DO NOTHING;
    END IF;
    CASE of_target
    WHEN 'kind' THEN
        UPDATE rowlock.kind AS t SET switch = mode, switch_reason = reason, switch_by = by_whom, switch_until = until
        WHERE t.kind = of_name AND (mode IS NOT NULL OR rowlock.is_on(t.switch, t.switch_until, now, 'reject', 'hold', 'pause'));
    WHEN 'queue' THEN
        UPDATE rowlock.queue AS t SET switch = mode, switch_reason = reason, switch_by = by_whom, switch_until = until
        WHERE t.queue = of_name AND (mode IS NOT NULL OR rowlock.is_on(t.switch, t.switch_until, now, 'reject', 'hold', 'pause'));
    ELSE
        UPDATE rowlock.pair AS t SET switch = mode, switch_reason = reason, switch_by = by_whom, switch_until = until
        WHERE t.name = of_name AND (mode IS NOT NULL OR rowlock.is_on(t.switch, t.switch_until, now, 'pause'));
    END CASE;
    done := FOUND;
    IF done AND mode IS NULL THEN
        PERFORM rowlock.note_plain();
    END IF;
    IF done THEN
        DELETE FROM rowlock.switched AS c WHERE c.target = of_target AND c.name = of_name;
    END IF;
    RETURN done;
END $$
