-- purpose: pair ?1 as it was declared
SELECT declared FROM rowlock_pair WHERE name = ?1
