-- The columns of a live job with the indexes that such a table needs.
CREATE TABLE plain (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, queue TEXT NOT NULL, priority INTEGER NOT NULL,
    state TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, unique_key TEXT,
    unique_until TEXT NOT NULL, key_held INTEGER NOT NULL DEFAULT 0, suspect INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0, locked_by TEXT, token INTEGER, tags TEXT NOT NULL DEFAULT '[]',
    trace_context TEXT, backoff TEXT, errors TEXT NOT NULL DEFAULT '[]', payload TEXT NOT NULL);
CREATE INDEX plain_ready ON plain (queue, kind, suspect, priority DESC, scheduled_at, id) WHERE state = 'pending';
CREATE UNIQUE INDEX plain_key ON plain (kind, unique_key) WHERE key_held = 1;
