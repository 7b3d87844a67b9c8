-- purpose: it sees all sessions and may end those of anybody but superusers
GRANT pg_monitor, pg_signal_backend TO "{role}"
