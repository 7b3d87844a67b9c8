-- purpose: kind ?1 goes by route ?2; without a row it gets one
INSERT INTO rowlock_kind (kind, route) VALUES (?1, ?2)
ON CONFLICT (kind) DO UPDATE SET route = excluded.route
