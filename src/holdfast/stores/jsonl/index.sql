-- Byte offsets of events in their files. Can be deleted at any time: it is rebuilt from the files.
CREATE TABLE files (
    key        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    inode      INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    modified   INTEGER NOT NULL,
    read       INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    parent     TEXT,
    parent_seq INTEGER NOT NULL,
    owner      TEXT
);
CREATE TABLE lanes (
    file       INTEGER NOT NULL,
    lane       TEXT    NOT NULL,
    mark       INTEGER NOT NULL,
    epoch      TEXT,
    start      INTEGER NOT NULL,
    base       INTEGER NOT NULL,
    base_epoch TEXT,
    PRIMARY KEY (file, lane)
);
CREATE TABLE events (
    file   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    lane   TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE INDEX events_by_seq ON events (file, seq);
CREATE INDEX events_by_lane ON events (file, lane, seq);
CREATE INDEX events_by_id ON events (file, id);
