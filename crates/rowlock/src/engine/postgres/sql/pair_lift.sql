-- purpose: forget keys that were held back; $2 which, or all of the pair's
DELETE FROM rowlock.pair_key WHERE pair = $1 AND ($2::text[] IS NULL OR key = ANY ($2))
