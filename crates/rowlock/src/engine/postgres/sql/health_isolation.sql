-- purpose: the isolation that transactions have unless they say otherwise, if it isn't the usual one
SELECT setting FROM current_setting('default_transaction_isolation') AS setting WHERE setting <> 'read committed'
