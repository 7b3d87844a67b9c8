-- purpose: the least that is written of a job that ends and isn't kept; $1 places $2 token
DELETE FROM bench.raw WHERE ctid = ANY ($1) AND token = $2
