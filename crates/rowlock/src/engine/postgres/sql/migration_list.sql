-- purpose: what was applied
SELECT version, name, checksum FROM rowlock.migration ORDER BY version
