-- Leases of several names on one session, each with an owner.
-- Leases that are held while the table is replaced are dropped: they only save work.
DROP TABLE leases;
CREATE TABLE leases (
    session INTEGER NOT NULL REFERENCES sessions (key),
    name    TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    until   REAL    NOT NULL,
    seconds REAL    NOT NULL,
    PRIMARY KEY (session, name)
);
