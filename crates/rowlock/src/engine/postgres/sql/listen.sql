-- purpose: hear of what is enqueued
-- A pooler that hands out a connection per transaction lets nothing through.
LISTEN "rowlock.ready"
