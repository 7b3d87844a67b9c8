-- purpose: remove the schema with everything in it
DROP SCHEMA IF EXISTS "rowlock" CASCADE
