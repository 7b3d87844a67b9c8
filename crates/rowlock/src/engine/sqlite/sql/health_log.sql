-- purpose: copy the log into the file as far as readers allow; pages in it, pages copied
PRAGMA wal_checkpoint(PASSIVE)
