-- purpose: a proof that others are heard
NOTIFY "rowlock.ready", '{proof}'
