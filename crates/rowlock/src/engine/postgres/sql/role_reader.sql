-- purpose: whoever only looks: stats, lists and jobs, payloads included; it changes nothing
GRANT USAGE ON SCHEMA "rowlock" TO "{role}";
GRANT SELECT ON ALL TABLES IN SCHEMA "rowlock" TO "{role}";
GRANT SELECT ON ALL SEQUENCES IN SCHEMA "rowlock" TO "{role}";
GRANT EXECUTE ON FUNCTION rowlock.now, rowlock.is_on TO "{role}"
