-- purpose: a call that sees what others have committed so far, whatever the database's default is
BEGIN ISOLATION LEVEL READ COMMITTED
