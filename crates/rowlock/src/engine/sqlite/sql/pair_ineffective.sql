-- purpose: count ?2 jobs of pair ?1 that were done without an effect
UPDATE rowlock_pair SET ineffective = ineffective + ?2 WHERE name = ?1
