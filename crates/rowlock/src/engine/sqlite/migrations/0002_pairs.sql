-- operators: safe while workers run
-- purpose: pairs, posts of their leaders, keys that are held back, crons and their ticks, counted switches

-- How many enqueues a switch has refused since it was set.
ALTER TABLE rowlock_kind ADD COLUMN switch_rejected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rowlock_queue ADD COLUMN switch_rejected INTEGER NOT NULL DEFAULT 0;

-- Which rows of the user's own tables need a job of a kind. declared is the whole declaration, as JSON.
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

CREATE INDEX rowlock_pair_kind ON rowlock_pair (kind);

-- Who leads what: each shard of a pair, and the crons (name ''). A leader lives while its beat moves;
-- whoever has seen it stand still for a whole lease takes over with a token of its own. And how its
-- last tick went.
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

-- Keys that ticks leave alone for a while. A normal success writes nothing here.
CREATE TABLE rowlock_pair_key (
    pair       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    reason     TEXT    NOT NULL CHECK (reason IN ('failed', 'cancelled', 'done', 'ineffective')),
    -- NULL: until it is lifted
    not_before INTEGER,
    n          INTEGER NOT NULL,
    PRIMARY KEY (pair, key)
) WITHOUT ROWID;

CREATE TABLE rowlock_cron (
    name     TEXT    NOT NULL PRIMARY KEY,
    declared TEXT    NOT NULL CHECK (json_valid(declared)),
    paused   INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- A tick makes one job, whoever asks and however often.
CREATE TABLE rowlock_cron_tick (
    name   TEXT    NOT NULL,
    tick   INTEGER NOT NULL,
    job_id INTEGER,
    PRIMARY KEY (name, tick)
) WITHOUT ROWID;

-- Staging from any language, as before, and counted when a switch refuses it.
DROP TRIGGER rowlock_enqueue_stages;

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
