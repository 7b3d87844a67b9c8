-- purpose: forget keys of pair ?1: ?2 [key, ...]
DELETE FROM rowlock_pair_key WHERE pair = ?1 AND key IN (SELECT value FROM json_each(?2))
