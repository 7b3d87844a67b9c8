-- purpose: remove a pair with its posts and the keys it held back
WITH keys AS (
    DELETE FROM rowlock.pair_key WHERE pair = $1
), posts AS (
    DELETE FROM rowlock.post WHERE duty = 'pair' AND name = $1
)
DELETE FROM rowlock.pair WHERE name = $1
