-- purpose: hear of what is enqueued, and of a proof that hearing works
-- A pooler that hands out a connection per transaction lets neither through.
LISTEN "rowlock.ready"; NOTIFY "rowlock.ready", '{proof}'
