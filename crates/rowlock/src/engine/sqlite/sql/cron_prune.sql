-- purpose: remove ticks of cron ?1 from before ?2, at most ?3; the last one stays to be seen
DELETE FROM rowlock_cron_tick WHERE name = ?1 AND tick IN (
    SELECT tick FROM rowlock_cron_tick
    WHERE name = ?1 AND tick < ?2 AND tick < (SELECT max(tick) FROM rowlock_cron_tick WHERE name = ?1)
    ORDER BY tick LIMIT ?3)
