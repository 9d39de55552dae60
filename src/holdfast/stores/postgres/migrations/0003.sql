-- Deleted sessions of which a session has copies of events, so that a redaction finds all copies.
-- Applications from schema 2 on can work with it.

CREATE TABLE holdfast.origins (
    session bigint NOT NULL,
    origin  text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, origin)
);
CREATE INDEX origins_by_origin ON holdfast.origins (origin);
