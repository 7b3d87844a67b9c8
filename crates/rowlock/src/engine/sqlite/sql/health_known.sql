-- purpose: the kinds and queues that have a row, and whether workers may take from them at ?1
-- differs: SQLite's lanes are walked seek by seek, in several statements
SELECT 'kind', kind, route = 'direct' AND NOT (switch IS NOT NULL AND coalesce(switch_until > ?1, 1)) FROM rowlock_kind
UNION ALL
SELECT 'queue', queue, route = 'direct' AND NOT (switch IS NOT NULL AND coalesce(switch_until > ?1, 1)) FROM rowlock_queue
