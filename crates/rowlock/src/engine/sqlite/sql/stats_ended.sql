-- purpose: ended jobs by queue and state, from the tally
SELECT queue, state, sum(n) FROM rowlock_tally GROUP BY queue, state
