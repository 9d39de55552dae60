-- The flags of sessions that somebody is at work on: who, and until when that is to be believed.
-- Rows come and go with the work; times are seconds since 1970, by the one clock of this machine.
CREATE TABLE leases (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    owner   TEXT NOT NULL,
    until   REAL NOT NULL
);
