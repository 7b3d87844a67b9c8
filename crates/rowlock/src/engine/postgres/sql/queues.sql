-- purpose: the queues that have settings
SELECT queue, rowlock.is_on(switch, switch_until, rowlock.now(), 'pause', 'hold'), switch_reason FROM rowlock.queue
