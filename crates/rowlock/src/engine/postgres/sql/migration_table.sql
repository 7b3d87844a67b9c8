-- purpose: the schema, and the record of what was applied to it
CREATE SCHEMA IF NOT EXISTS "rowlock";
CREATE TABLE IF NOT EXISTS rowlock.migration (
    version    integer NOT NULL PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- What the schema consisted of when it was made; a change behind our back shows.
CREATE TABLE IF NOT EXISTS rowlock.schema_part (
    thing   text NOT NULL PRIMARY KEY,
    content text NOT NULL
)
