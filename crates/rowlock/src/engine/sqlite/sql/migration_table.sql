-- purpose: the record of what was applied
CREATE TABLE IF NOT EXISTS rowlock_migration (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
)
