-- purpose: forget a workload class
DELETE FROM rowlock.budget WHERE class = $1
