-- purpose: jobs of the textbook's queue are done; $1 ids
DELETE FROM bench.textbook WHERE id = ANY ($1)
