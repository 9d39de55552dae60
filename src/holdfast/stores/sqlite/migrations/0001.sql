-- The first schema: sessions, lanes, events, media.
-- `sessions` is narrow, because every append updates its row; fields that never change are in `records`.
CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    version    INTEGER NOT NULL,
    parent     INTEGER REFERENCES sessions (key),
    parent_seq INTEGER NOT NULL,
    owner      TEXT,
    created    TEXT    NOT NULL
);
CREATE INDEX sessions_by_owner ON sessions (owner, created);
CREATE INDEX sessions_by_created ON sessions (created, id);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE records (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    record  TEXT NOT NULL
);

CREATE TABLE lanes (
    session    INTEGER NOT NULL REFERENCES sessions (key),
    lane       TEXT    NOT NULL,
    mark       INTEGER NOT NULL,
    epoch      TEXT,
    start      INTEGER NOT NULL,
    base       INTEGER NOT NULL,
    base_epoch TEXT,
    PRIMARY KEY (session, lane)
);

-- A plain rowid table: WITHOUT ROWID is slower when sessions interleave, and `row` is the search index's key.
CREATE TABLE events (
    row       INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES sessions (key),
    seq       INTEGER NOT NULL,
    id        TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    time      TEXT    NOT NULL,
    epoch     TEXT,
    v         INTEGER NOT NULL,
    digest    TEXT    NOT NULL,
    rewritten TEXT,
    body      TEXT    NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (session, id);
CREATE UNIQUE INDEX events_by_lane ON events (session, lane, seq);

CREATE TABLE media (
    session INTEGER NOT NULL REFERENCES sessions (key),
    digest  TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    data    TEXT    NOT NULL,
    PRIMARY KEY (session, digest)
);

-- Watermark and version of the search index.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
