-- Deleted sessions of which a session has copies of events, each with a name of its own.
-- Sessions that have one in common are found after the session that they were forked from is gone.
CREATE TABLE origins (
    session INTEGER NOT NULL REFERENCES sessions (key),
    origin  TEXT    NOT NULL,
    PRIMARY KEY (session, origin)
);
CREATE INDEX origins_by_origin ON origins (origin);
