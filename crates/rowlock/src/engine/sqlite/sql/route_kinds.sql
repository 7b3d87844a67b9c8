-- purpose: the kinds that go by route ?1 or are among ?2, and their routes
SELECT kind, route FROM rowlock_kind WHERE route = ?1 OR kind IN (SELECT value FROM json_each(?2))
