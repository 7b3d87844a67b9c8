-- purpose: a worker is gone
DELETE FROM rowlock_worker WHERE id = ?1
