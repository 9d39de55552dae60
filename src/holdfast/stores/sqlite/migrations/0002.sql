-- Leases on sessions: owner and expiry.
-- `until` is in seconds since 1970, by this machine's clock.
CREATE TABLE leases (
    session INTEGER PRIMARY KEY REFERENCES sessions (key),
    owner   TEXT NOT NULL,
    until   REAL NOT NULL
);
