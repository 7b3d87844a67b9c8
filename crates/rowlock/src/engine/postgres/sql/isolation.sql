-- purpose: whether a call that begins no transaction of its own sees what others have committed so far, and which process answers
SELECT current_setting('default_transaction_isolation') = 'read committed', pg_backend_pid()
