-- purpose: what index ?1 is; nothing for one that a constraint has made
SELECT sql FROM main.sqlite_master WHERE type = 'index' AND name = ?1
