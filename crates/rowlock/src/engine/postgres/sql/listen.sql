-- purpose: hear of what is enqueued
LISTEN "rowlock.ready"
