-- purpose: how many sessions of a name there are beside this one
SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()
