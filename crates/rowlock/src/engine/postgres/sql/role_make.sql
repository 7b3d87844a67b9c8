-- purpose: a role that others are made members of; one that is there already stays as it is
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE "{role}" NOLOGIN;
    END IF;
END $$
