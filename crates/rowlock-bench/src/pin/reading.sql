SET idle_in_transaction_session_timeout = 0;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM bench.kind;
