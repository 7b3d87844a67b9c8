-- purpose: note the states of pair ?1 that nobody claims
UPDATE rowlock_pair SET uncovered = ?2 WHERE name = ?1
