-- purpose: the workload classes
SELECT class, max, match::text FROM rowlock.budget ORDER BY class
