-- purpose: switches that are on, of kinds and then of queues
SELECT false AS of_queue, kind AS name, switch, switch_reason, switch_until FROM rowlock.kind
WHERE rowlock.is_on(switch, switch_until, rowlock.now(), 'reject', 'hold', 'pause')
UNION ALL
SELECT true, queue, switch, switch_reason, switch_until FROM rowlock.queue
WHERE rowlock.is_on(switch, switch_until, rowlock.now(), 'reject', 'hold', 'pause')
ORDER BY of_queue, name
