-- purpose: remove pair ?1
DELETE FROM rowlock_pair WHERE name = ?1
