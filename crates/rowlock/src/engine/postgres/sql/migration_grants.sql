-- purpose: roles that were let in before may do the same with what a later migration adds
DO $$ DECLARE thing record; BEGIN
    FOR thing IN
        SELECT DISTINCT format('GRANT %s ON %s TO %s', a.privilege_type, c.oid::regclass, a.grantee::regrole) AS text
        FROM pg_class AS old CROSS JOIN LATERAL aclexplode(old.relacl) AS a CROSS JOIN pg_class AS c
        WHERE old.oid = 'rowlock.key'::regclass AND a.grantee NOT IN (0, old.relowner)
          AND c.relnamespace = old.relnamespace AND c.relkind = 'r' AND c.relacl IS NULL
        UNION
        SELECT DISTINCT format('GRANT %s ON SEQUENCE %s TO %s', a.privilege_type, c.oid::regclass, a.grantee::regrole)
        FROM pg_class AS old CROSS JOIN LATERAL aclexplode(old.relacl) AS a CROSS JOIN pg_class AS c
        WHERE old.oid = 'rowlock.bell'::regclass AND a.grantee NOT IN (0, old.relowner)
          AND c.relnamespace = old.relnamespace AND c.relkind = 'S' AND c.relacl IS NULL
        UNION
        SELECT DISTINCT format('GRANT EXECUTE ON FUNCTION %s TO %s', p.oid::regprocedure, a.grantee::regrole)
        FROM pg_proc AS old CROSS JOIN LATERAL aclexplode(old.proacl) AS a CROSS JOIN pg_proc AS p
        WHERE old.oid = 'rowlock.tidy'::regproc AND a.grantee NOT IN (0, old.proowner)
          AND p.pronamespace = old.pronamespace
          AND NOT EXISTS (SELECT 1 FROM aclexplode(p.proacl) AS b WHERE b.grantee <> p.proowner)
        UNION
        -- Whoever stages jobs may stage one, and many that are alike.
        SELECT DISTINCT format('GRANT EXECUTE ON FUNCTION rowlock.stage_alike TO %s', a.grantee::regrole)
        FROM pg_proc AS old CROSS JOIN LATERAL aclexplode(old.proacl) AS a
        WHERE old.oid = 'rowlock.stage'::regproc AND a.grantee NOT IN (0, old.proowner)
        UNION
        SELECT DISTINCT format('GRANT EXECUTE ON FUNCTION rowlock.stage_plain(text, text, text, bigint, bigint, text, text) TO %s', a.grantee::regrole)
        FROM pg_proc AS old CROSS JOIN LATERAL aclexplode(old.proacl) AS a
        WHERE old.oid = 'rowlock.stage'::regproc AND a.grantee NOT IN (0, old.proowner)
        UNION
        -- And may keep to its budget.
        SELECT DISTINCT format('GRANT EXECUTE ON FUNCTION rowlock.budget_enter TO %s', a.grantee::regrole)
        FROM pg_proc AS old CROSS JOIN LATERAL aclexplode(old.proacl) AS a
        WHERE old.oid = 'rowlock.stage'::regproc AND a.grantee NOT IN (0, old.proowner)
    LOOP
        EXECUTE thing.text;
    END LOOP;
END $$
