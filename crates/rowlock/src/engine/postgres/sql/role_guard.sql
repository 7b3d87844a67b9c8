-- purpose: whoever watches other sessions: the classes they belong to, and no jobs
GRANT USAGE ON SCHEMA "rowlock" TO "{role}";
GRANT SELECT ON rowlock.budget, rowlock.migration TO "{role}";
GRANT EXECUTE ON FUNCTION rowlock.now TO "{role}"
