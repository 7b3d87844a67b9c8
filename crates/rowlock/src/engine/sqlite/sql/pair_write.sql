-- purpose: write a pair
-- ?1 name ?2 kind ?3 declared ?4 hold_back_ms ?5 now
INSERT INTO rowlock_pair (name, kind, declared, hold_back_ms, declared_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET
    kind = excluded.kind, declared = excluded.declared, hold_back_ms = excluded.hold_back_ms
