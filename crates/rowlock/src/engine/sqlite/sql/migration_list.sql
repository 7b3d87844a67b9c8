-- purpose: what was applied
SELECT version, name, checksum FROM rowlock_migration ORDER BY version
