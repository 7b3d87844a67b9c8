-- purpose: whether a query of the user's left the transaction as it was: before PostgreSQL 16 a function can RESET it
SELECT pg_catalog.current_setting('transaction_read_only') = 'on'
