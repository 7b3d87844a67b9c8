-- purpose: whoever watches other sessions: it sees all of them and may end them, and no jobs
GRANT pg_monitor, pg_signal_backend TO "{role}"
