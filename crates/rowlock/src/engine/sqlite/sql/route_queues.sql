-- purpose: the queues that go by route ?1 or are among ?2, and their routes
SELECT queue, route FROM rowlock_queue WHERE route = ?1 OR queue IN (SELECT value FROM json_each(?2))
