-- purpose: queue ?1 goes by route ?2; without a row it gets one
INSERT INTO rowlock_queue (queue, route) VALUES (?1, ?2)
ON CONFLICT (queue) DO UPDATE SET route = excluded.route
