-- purpose: whether transactions can be prepared and slots made here
SELECT current_setting('max_prepared_transactions')::integer > 0,
       current_setting('wal_level') = 'logical' AND current_setting('max_replication_slots')::integer > 0
