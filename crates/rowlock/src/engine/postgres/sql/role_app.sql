-- purpose: the application: it may stage jobs, and complete one in its own transaction; nothing else
GRANT USAGE ON SCHEMA "rowlock" TO "{role}";
GRANT EXECUTE ON FUNCTION rowlock.enqueue, rowlock.enqueue_many, rowlock.stage,
    rowlock.stage_plain, rowlock.complete TO "{role}"
