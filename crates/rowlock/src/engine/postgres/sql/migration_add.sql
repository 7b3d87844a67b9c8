-- purpose: remember an applied migration
INSERT INTO rowlock.migration (version, name, checksum) VALUES ($1, $2, $3)
