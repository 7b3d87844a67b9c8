-- operators: safe while workers run
-- purpose: pairs, posts of their leaders, keys that are held back, crons and their ticks, counted switches

-- How many enqueues a switch has refused since it was set: appended, because a count in the row of the
-- kind would make every refused transaction wait for the one before.
CREATE TABLE rowlock.switched (
    target text COLLATE "C" NOT NULL CHECK (target IN ('kind', 'queue')),
    name   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL
);

-- Which rows of the user's own tables need a job of a kind. declared is the whole declaration, as JSON.
CREATE TABLE rowlock.pair (
    name          text COLLATE "C" PRIMARY KEY,
    kind          text COLLATE "C" NOT NULL,
    declared      json NOT NULL,
    hold_back_ms  bigint NOT NULL,
    declared_at   timestamptz NOT NULL,
    ineffective   bigint NOT NULL DEFAULT 0,
    -- [[state, rows], ...] that nobody claims
    uncovered     json NOT NULL DEFAULT '[]',
    switch        text CHECK (switch = 'pause'),
    switch_reason text,
    switch_by     text,
    switch_until  timestamptz
);

CREATE INDEX pair_kind ON rowlock.pair (kind);

-- Who leads what: each shard of a pair, and the crons (name ''). A leader lives while its beat moves;
-- whoever has seen it stand still for a whole lease takes over with a token of its own. And how its
-- last tick went.
CREATE TABLE rowlock.post (
    duty          text COLLATE "C" NOT NULL CHECK (duty IN ('pair', 'cron')),
    name          text COLLATE "C" NOT NULL,
    shard         integer NOT NULL,
    token         bigint,
    beat          bigint NOT NULL DEFAULT 0,
    holder        text,
    -- Where a tick that overran goes on.
    cursor        text,
    due_at        timestamptz,
    last_success  timestamptz,
    last_took_ms  bigint NOT NULL DEFAULT 0,
    last_found    bigint NOT NULL DEFAULT 0,
    last_enqueued bigint NOT NULL DEFAULT 0,
    lost          bigint NOT NULL DEFAULT 0,
    ticks         bigint NOT NULL DEFAULT 0,
    error         text,
    PRIMARY KEY (duty, name, shard)
) WITH (fillfactor = 50);

-- Keys that ticks leave alone for a while. A normal success writes nothing here.
CREATE TABLE rowlock.pair_key (
    pair       text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL CHECK (reason IN ('failed', 'cancelled', 'done', 'ineffective')),
    -- NULL: until it is lifted
    not_before timestamptz,
    n          integer NOT NULL,
    PRIMARY KEY (pair, key)
);

CREATE TABLE rowlock.cron (
    name     text COLLATE "C" PRIMARY KEY,
    declared json NOT NULL,
    paused   boolean NOT NULL DEFAULT false,
    next_at  timestamptz NOT NULL
);

-- A tick makes one job, whoever asks and however often.
CREATE TABLE rowlock.cron_tick (
    name   text COLLATE "C" NOT NULL,
    tick   timestamptz NOT NULL,
    job_id bigint,
    PRIMARY KEY (name, tick)
);
