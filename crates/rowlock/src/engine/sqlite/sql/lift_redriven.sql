-- purpose: whoever redrives ended job ?1 takes back that it was cancelled
DELETE FROM rowlock_pair_key
WHERE reason = 'cancelled'
  AND key = (SELECT unique_key FROM rowlock_history WHERE id = ?1)
  AND pair IN (SELECT p.name FROM rowlock_history AS ended
               CROSS JOIN rowlock_pair AS p ON p.kind = ended.kind WHERE ended.id = ?1)
