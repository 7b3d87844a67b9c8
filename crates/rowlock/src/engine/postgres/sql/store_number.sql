-- purpose: the store's own number, for the keys of its jobs; nothing is written for it
SELECT coalesce((SELECT id FROM rowlock.store), (SELECT last_value FROM rowlock.store_seed)
    # (SELECT oid::bigint FROM pg_database WHERE datname = current_database()))
