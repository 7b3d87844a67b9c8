-- purpose: whether a worker has joined and was not given up
SELECT EXISTS (SELECT 1 FROM rowlock_worker WHERE id = ?1)
