-- purpose: a trigger that was switched off works again
ALTER TABLE {table} ENABLE TRIGGER {trigger}
