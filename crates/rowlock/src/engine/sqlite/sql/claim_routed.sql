-- purpose: the kinds and queues that go by a route, and by which
SELECT 'kind', kind, route FROM rowlock_kind INDEXED BY rowlock_kind_routed WHERE route <> 'direct'
UNION ALL
SELECT 'queue', queue, route FROM rowlock_queue WHERE route <> 'direct'
