-- purpose: write a cron; one that is there keeps its next tick unless ?4
-- ?1 name ?2 declared ?3 next_at ?4 whether its calendar is another one
INSERT INTO rowlock_cron (name, declared, next_at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET
    declared = excluded.declared, next_at = CASE WHEN ?4 THEN excluded.next_at ELSE next_at END
