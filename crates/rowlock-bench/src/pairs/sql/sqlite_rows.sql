CREATE TABLE databases (id INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL);
CREATE INDEX databases_pending ON databases (id) WHERE state = 'pending';
