SET idle_in_transaction_session_timeout = 0;
CREATE TABLE bench.pinned (n integer);
BEGIN;
INSERT INTO bench.pinned VALUES (1);
