-- purpose: the store's own number
SELECT id FROM rowlock_store
