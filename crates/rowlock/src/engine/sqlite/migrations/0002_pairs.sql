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
