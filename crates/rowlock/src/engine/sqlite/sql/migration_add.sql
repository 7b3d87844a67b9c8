-- purpose: remember an applied migration
INSERT INTO rowlock_migration (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)
