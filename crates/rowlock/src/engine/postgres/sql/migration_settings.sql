-- purpose: a migration sees what others have migrated, waits for nobody for long, and never stays open
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '60s'
