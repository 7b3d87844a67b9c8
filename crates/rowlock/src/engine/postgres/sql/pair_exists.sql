-- purpose: whether a pair is declared
SELECT 1 FROM rowlock.pair WHERE name = $1
