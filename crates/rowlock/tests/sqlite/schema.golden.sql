CREATE TABLE rowlock_cron (
    name     TEXT    NOT NULL PRIMARY KEY,
    declared TEXT    NOT NULL CHECK (json_valid(declared)),
    paused   INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE rowlock_cron_tick (
    name   TEXT    NOT NULL,
    tick   INTEGER NOT NULL,
    job_id INTEGER,
    PRIMARY KEY (name, tick)
) WITHOUT ROWID;

CREATE VIEW rowlock_enqueue AS
SELECT kind, payload, queue, priority, scheduled_at, max_attempts, unique_key, unique_until, tags
FROM rowlock_job
WHERE state = 'pending';

CREATE TRIGGER rowlock_enqueue_stages INSTEAD OF INSERT ON rowlock_enqueue BEGIN
    SELECT RAISE(ABORT, 'rowlock: kind is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _')
    WHERE coalesce(typeof(NEW.kind) <> 'text'
        OR length(CAST(NEW.kind AS BLOB)) NOT BETWEEN 1 AND 63
        OR NEW.kind GLOB '[.:-]*'
        OR length(NEW.kind) <> length(CAST(NEW.kind AS BLOB))
        OR NEW.kind GLOB '*[^A-Za-z0-9_.:-]*', 1);
    SELECT RAISE(ABORT, 'rowlock: queue is not a valid name: use 1 to 63 of A-Z a-z 0-9 _ . : - and start with a letter, a digit or _')
    WHERE NEW.queue IS NOT NULL AND (typeof(NEW.queue) <> 'text'
        OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 63
        OR NEW.queue GLOB '[.:-]*'
        OR length(NEW.queue) <> length(CAST(NEW.queue AS BLOB))
        OR NEW.queue GLOB '*[^A-Za-z0-9_.:-]*');
    SELECT RAISE(ABORT, 'rowlock: the payload is not valid JSON')
    WHERE NOT coalesce(json_valid(coalesce(NEW.payload, '{}')), 0);
    SELECT RAISE(ABORT, 'rowlock: the payload has more than 1048576 bytes: store large data elsewhere and pass a reference')
    WHERE length(CAST(json(coalesce(NEW.payload, '{}')) AS BLOB)) > 1048576;
    -- An escaped backslash before u0000 is text; anything else there is a NUL.
    SELECT RAISE(ABORT, 'rowlock: the payload has a NUL character (\u0000), which can''t be stored')
    WHERE instr(replace(NEW.payload, '\\', ''), '\u0000') > 0
       OR instr(CAST(NEW.payload AS BLOB), x'00') > 0;
    -- Peeled level by level, and only when there are brackets enough to be too deep.
    SELECT RAISE(ABORT, 'rowlock: the payload nests deeper than 128 levels')
    WHERE length(NEW.payload) - length(replace(replace(NEW.payload, '[', ''), '{', '')) > 128
      AND (WITH RECURSIVE level (depth, value) AS (
               SELECT 1, NEW.payload
               UNION ALL
               SELECT level.depth + 1, child.value
               FROM level, json_each(level.value) AS child
               WHERE child.type IN ('array', 'object') AND level.depth <= 128)
           SELECT max(depth) FROM level) > 128;
    SELECT RAISE(ABORT, 'rowlock: a number of the payload is out of range')
    WHERE EXISTS (SELECT 1 FROM json_tree(NEW.payload)
                  WHERE type = 'real' AND abs(atom) > 1.7976931348623157e308);
    SELECT RAISE(ABORT, 'rowlock: a field of the payload appears twice')
    WHERE EXISTS (SELECT 1 FROM json_tree(NEW.payload) WHERE typeof(key) = 'text'
                  GROUP BY parent, key HAVING count(*) > 1);
    SELECT RAISE(ABORT, 'rowlock: priority must be an integer from -32768 to 32767')
    WHERE NEW.priority IS NOT NULL
      AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -32768 AND 32767);
    SELECT RAISE(ABORT, 'rowlock: max_attempts must be an integer from 1 to 1000000')
    WHERE NEW.max_attempts IS NOT NULL
      AND (typeof(NEW.max_attempts) <> 'integer' OR NEW.max_attempts NOT BETWEEN 1 AND 1000000);
    SELECT RAISE(ABORT, 'rowlock: scheduled_at must be integer milliseconds since 1970 UTC')
    WHERE NEW.scheduled_at IS NOT NULL
      AND (typeof(NEW.scheduled_at) <> 'integer' OR NEW.scheduled_at NOT BETWEEN -377705023201000 AND 253402207200000);
    SELECT RAISE(ABORT, 'rowlock: unique_key must be text of 1 to 65536 bytes without NUL')
    WHERE NEW.unique_key IS NOT NULL
      AND (typeof(NEW.unique_key) <> 'text'
        OR length(CAST(NEW.unique_key AS BLOB)) NOT BETWEEN 1 AND 65536
        OR instr(CAST(NEW.unique_key AS BLOB), x'00') > 0);
    SELECT RAISE(ABORT, 'rowlock: unique_until must be start or finished')
    WHERE NEW.unique_until IS NOT NULL AND NEW.unique_until NOT IN ('start', 'finished');
    SELECT RAISE(ABORT, 'rowlock: tags must be a JSON array of valid names')
    WHERE NEW.tags IS NOT NULL
      AND NOT coalesce(CASE WHEN json_valid(NEW.tags) THEN json_type(NEW.tags) = 'array' END, 0);
    SELECT RAISE(ABORT, 'rowlock: tags must be a JSON array of valid names')
    WHERE EXISTS (SELECT 1 FROM json_each(coalesce(NEW.tags, '[]')) AS tag
        WHERE tag.type <> 'text' OR length(CAST(tag.value AS BLOB)) NOT BETWEEN 1 AND 63
           OR tag.value GLOB '[.:-]*' OR tag.value GLOB '*[^A-Za-z0-9_.:-]*'
           OR instr(NEW.tags, '\u0000') > 0);
    SELECT RAISE(ABORT, 'rowlock: the payload lacks a field of the kind''s unique key')
    FROM rowlock_kind AS k, json_each(k.key_fields) AS field
    WHERE k.kind = NEW.kind AND NEW.unique_key IS NULL
      AND json_type(coalesce(NEW.payload, '{}'), '$."' || field.value || '"') IS NULL;

    INSERT INTO rowlock_job
        (kind, queue, priority, state, max_attempts, scheduled_at, created_at,
         unique_key, unique_until, key_held, tags, payload)
    SELECT s.kind, s.queue, s.priority, 'pending', s.max_attempts,
           coalesce(s.scheduled_at, s.now), s.now,
           s.unique_key, s.unique_until, s.unique_key IS NOT NULL, s.tags, s.payload
    FROM (
        SELECT NEW.kind AS kind,
               coalesce(NEW.queue, k.queue, 'default') AS queue,
               coalesce(NEW.priority, k.priority, 0) AS priority,
               coalesce(NEW.max_attempts, k.max_attempts, 5) AS max_attempts,
               NEW.scheduled_at AS scheduled_at,
               CAST(strftime('%s', 'now') AS INTEGER) * 1000
                   + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS now,
               coalesce(NEW.unique_key,
                   (SELECT '[' || group_concat(CASE json_type(NEW.payload, '$."' || field.value || '"')
                        WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null'
                        WHEN 'object' THEN json_extract(NEW.payload, '$."' || field.value || '"')
                        WHEN 'array' THEN json_extract(NEW.payload, '$."' || field.value || '"')
                        WHEN 'integer' THEN NEW.payload -> ('$."' || field.value || '"')
                        WHEN 'real' THEN NEW.payload -> ('$."' || field.value || '"')
                        ELSE json_quote(json_extract(NEW.payload, '$."' || field.value || '"')) END, ',') || ']'
                    FROM json_each(k.key_fields) AS field)) AS unique_key,
               coalesce(NEW.unique_until, k.unique_until, 'finished') AS unique_until,
               json(coalesce(NEW.tags, '[]')) AS tags,
               json(coalesce(NEW.payload, '{}')) AS payload,
               k.switch AS switch, k.switch_until AS switch_until
        FROM (SELECT 1) LEFT JOIN rowlock_kind AS k ON k.kind = NEW.kind) AS s
    LEFT JOIN rowlock_queue AS q ON q.queue = s.queue
    WHERE NOT coalesce(s.switch = 'reject' AND coalesce(s.switch_until > s.now, 1), 0)
      AND NOT coalesce(q.switch = 'reject' AND coalesce(q.switch_until > s.now, 1), 0)
    ON CONFLICT (kind, unique_key) WHERE key_held = 1 DO NOTHING;

    -- The kind's switch refuses first: one refusal is counted once.
    UPDATE rowlock_queue SET switch_rejected = switch_rejected + 1
    WHERE queue = coalesce(NEW.queue, (SELECT k.queue FROM rowlock_kind AS k WHERE k.kind = NEW.kind), 'default')
      AND switch = 'reject'
      AND coalesce(switch_until > CAST(strftime('%s', 'now') AS INTEGER) * 1000
              + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER), 1)
      AND NOT EXISTS (
          SELECT 1 FROM rowlock_kind AS k WHERE k.kind = NEW.kind AND k.switch = 'reject'
          AND coalesce(k.switch_until > CAST(strftime('%s', 'now') AS INTEGER) * 1000
              + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER), 1));
    UPDATE rowlock_kind SET switch_rejected = switch_rejected + 1
    WHERE kind = NEW.kind AND switch = 'reject'
      AND coalesce(switch_until > CAST(strftime('%s', 'now') AS INTEGER) * 1000
              + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER), 1);
END;

CREATE TABLE rowlock_history (
    id            INTEGER PRIMARY KEY,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('completed', 'failed', 'cancelled')),
    attempt       INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    scheduled_at  INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    started_at    INTEGER,
    finished_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    unique_key    TEXT,
    unique_until  TEXT    NOT NULL,
    tags          TEXT    NOT NULL,
    trace_context TEXT,
    backoff       TEXT,
    errors        TEXT    NOT NULL,
    payload       TEXT    NOT NULL
);

CREATE TRIGGER rowlock_history_arrives AFTER INSERT ON rowlock_history BEGIN
    DELETE FROM rowlock_job WHERE id = NEW.id;
    INSERT INTO rowlock_tally (expiry_day, queue, state, n)
    VALUES (NEW.expires_at / 86400000, NEW.queue, NEW.state, 1)
    ON CONFLICT (expiry_day, queue, state) DO UPDATE SET n = n + 1;
END;

CREATE INDEX rowlock_history_expiry ON rowlock_history (expires_at);

CREATE TRIGGER rowlock_history_leaves AFTER DELETE ON rowlock_history BEGIN
    UPDATE rowlock_tally SET n = n - 1
    WHERE expiry_day = OLD.expires_at / 86400000 AND queue = OLD.queue AND state = OLD.state;
    DELETE FROM rowlock_tally
    WHERE expiry_day = OLD.expires_at / 86400000 AND queue = OLD.queue AND state = OLD.state AND n <= 0;
END;

CREATE TABLE rowlock_job (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    kind             TEXT    NOT NULL,
    queue            TEXT    NOT NULL,
    priority         INTEGER NOT NULL CHECK (typeof(priority) = 'integer'),
    state            TEXT    NOT NULL CHECK (state IN ('pending', 'processing')),
    attempt          INTEGER NOT NULL DEFAULT 0,
    max_attempts     INTEGER NOT NULL,
    scheduled_at     INTEGER NOT NULL CHECK (typeof(scheduled_at) = 'integer'),
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    unique_key       TEXT,
    unique_until     TEXT    NOT NULL,
    key_held         INTEGER NOT NULL DEFAULT 0,
    suspect          INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    locked_by        TEXT,
    token            INTEGER,
    tags             TEXT    NOT NULL DEFAULT '[]',
    trace_context    TEXT,
    backoff          TEXT,
    errors           TEXT    NOT NULL DEFAULT '[]',
    payload          TEXT    NOT NULL
);

CREATE INDEX rowlock_job_cancelling ON rowlock_job (locked_by, id, token)
    WHERE state = 'processing' AND cancel_requested = 1;

CREATE UNIQUE INDEX rowlock_job_key ON rowlock_job (kind, unique_key) WHERE key_held = 1;

CREATE INDEX rowlock_job_ready
    ON rowlock_job (queue, kind, suspect, priority DESC, scheduled_at, id)
    WHERE state = 'pending';

CREATE INDEX rowlock_job_running ON rowlock_job (locked_by, token) WHERE state = 'processing';

CREATE VIEW rowlock_jobs AS
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, NULL AS finished_at, unique_key, tags, trace_context, errors, locked_by
FROM rowlock_job
UNION ALL
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors, NULL
FROM rowlock_history;

CREATE TABLE rowlock_kind (
    kind              TEXT    NOT NULL PRIMARY KEY CHECK (length(kind) BETWEEN 1 AND 63
                              AND kind NOT GLOB '[.:-]*' AND kind NOT GLOB '*[^A-Za-z0-9_.:-]*'),
    queue             TEXT    NOT NULL DEFAULT 'default' CHECK (length(queue) BETWEEN 1 AND 63
                              AND queue NOT GLOB '[.:-]*' AND queue NOT GLOB '*[^A-Za-z0-9_.:-]*'),
    priority          INTEGER NOT NULL DEFAULT 0 CHECK (typeof(priority) = 'integer'
                              AND priority BETWEEN -32768 AND 32767),
    max_attempts      INTEGER NOT NULL DEFAULT 5 CHECK (typeof(max_attempts) = 'integer'
                              AND max_attempts BETWEEN 1 AND 1000000),
    backoff           TEXT    NOT NULL DEFAULT '{"kind":"linear","base":"30s","jitter":0.1}'
                              CHECK (json_valid(backoff)),
    timeout_ms        INTEGER NOT NULL DEFAULT 900000 CHECK (typeof(timeout_ms) = 'integer' AND timeout_ms > 0),
    key_fields        TEXT    NOT NULL DEFAULT '[]'
                              CHECK (CASE WHEN json_valid(key_fields) THEN json_type(key_fields) = 'array' ELSE 0 END),
    unique_until      TEXT    NOT NULL DEFAULT 'finished' CHECK (unique_until IN ('start', 'finished')),
    route             TEXT    NOT NULL DEFAULT 'direct',
    keep_completed_ms INTEGER NOT NULL DEFAULT 86400000 CHECK (typeof(keep_completed_ms) = 'integer'),
    keep_failed_ms    INTEGER NOT NULL DEFAULT 2592000000 CHECK (typeof(keep_failed_ms) = 'integer'),
    keep_cancelled_ms INTEGER NOT NULL DEFAULT 604800000 CHECK (typeof(keep_cancelled_ms) = 'integer'),
    switch            TEXT    CHECK (switch IN ('reject', 'hold', 'pause')),
    switch_reason     TEXT,
    switch_by         TEXT,
    switch_until      INTEGER CHECK (typeof(switch_until) IN ('integer', 'null'))
, switch_rejected INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE INDEX rowlock_kind_routed ON rowlock_kind (kind, route) WHERE route <> 'direct';

CREATE INDEX rowlock_kind_switched ON rowlock_kind (kind, switch, switch_until) WHERE switch IS NOT NULL;

CREATE TABLE rowlock_migration (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);

CREATE TABLE rowlock_pair (
    name          TEXT    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    declared      TEXT    NOT NULL CHECK (json_valid(declared)),
    hold_back_ms  INTEGER NOT NULL,
    declared_at   INTEGER NOT NULL,
    ineffective   INTEGER NOT NULL DEFAULT 0,
    -- [[state, rows], ...] that nobody claims
    uncovered     TEXT    NOT NULL DEFAULT '[]' CHECK (json_valid(uncovered)),
    switch        TEXT    CHECK (switch = 'pause'),
    switch_reason TEXT,
    switch_by     TEXT,
    switch_until  INTEGER CHECK (typeof(switch_until) IN ('integer', 'null'))
) WITHOUT ROWID;

CREATE TABLE rowlock_pair_key (
    pair       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    reason     TEXT    NOT NULL CHECK (reason IN ('failed', 'cancelled', 'done', 'ineffective')),
    -- NULL: until it is lifted
    not_before INTEGER,
    n          INTEGER NOT NULL,
    PRIMARY KEY (pair, key)
) WITHOUT ROWID;

CREATE INDEX rowlock_pair_kind ON rowlock_pair (kind);

CREATE TABLE rowlock_post (
    duty            TEXT    NOT NULL CHECK (duty IN ('pair', 'cron')),
    name            TEXT    NOT NULL,
    shard           INTEGER NOT NULL,
    token           INTEGER,
    beat            INTEGER NOT NULL DEFAULT 0,
    holder          TEXT,
    -- Where a tick that overran goes on.
    cursor          TEXT,
    due_at          INTEGER,
    last_success    INTEGER,
    last_took_ms    INTEGER NOT NULL DEFAULT 0,
    last_found      INTEGER NOT NULL DEFAULT 0,
    last_enqueued   INTEGER NOT NULL DEFAULT 0,
    lost            INTEGER NOT NULL DEFAULT 0,
    ticks           INTEGER NOT NULL DEFAULT 0,
    error           TEXT,
    PRIMARY KEY (duty, name, shard)
) WITHOUT ROWID;

CREATE TABLE rowlock_queue (
    queue         TEXT NOT NULL PRIMARY KEY CHECK (length(queue) BETWEEN 1 AND 63
                  AND queue NOT GLOB '[.:-]*' AND queue NOT GLOB '*[^A-Za-z0-9_.:-]*'),
    switch        TEXT CHECK (switch IN ('reject', 'hold', 'pause')),
    switch_reason TEXT,
    switch_by     TEXT,
    switch_until  INTEGER CHECK (typeof(switch_until) IN ('integer', 'null'))
, switch_rejected INTEGER NOT NULL DEFAULT 0, route TEXT NOT NULL DEFAULT 'direct') WITHOUT ROWID;

CREATE TABLE rowlock_store (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id  INTEGER NOT NULL
);

CREATE TABLE rowlock_tally (
    expiry_day INTEGER NOT NULL,
    queue      TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (expiry_day, queue, state)
) WITHOUT ROWID;

CREATE TABLE rowlock_worker (
    id            TEXT    NOT NULL PRIMARY KEY,
    beat          INTEGER NOT NULL DEFAULT 0,
    lease_ms      INTEGER NOT NULL,
    joined_at     INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    suspect_id    INTEGER,
    suspect_token INTEGER
) WITHOUT ROWID;
