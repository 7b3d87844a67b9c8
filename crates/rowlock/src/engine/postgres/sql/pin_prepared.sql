-- purpose: the transactions of this database that were prepared and not ended
SELECT gid, owner::text, (extract(epoch FROM rowlock.now() - prepared) * 1000)::bigint, age(transaction)::bigint
FROM pg_prepared_xacts WHERE database = current_database()
