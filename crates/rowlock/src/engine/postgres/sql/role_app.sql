-- purpose: the application: it may stage jobs, complete one in its own transaction, and keep to a budget; nothing else
GRANT USAGE ON SCHEMA "rowlock" TO "{role}";
GRANT EXECUTE ON FUNCTION rowlock.enqueue, rowlock.enqueue_many, rowlock.stage,
    rowlock.stage_plain(text, text, text, bigint, bigint, text, text), rowlock.stage_alike,
    rowlock.complete, rowlock.budget_enter TO "{role}"
