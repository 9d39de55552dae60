-- Not a migration: created if this SQLite has FTS5; can be dropped and rebuilt at any time.
-- The index holds the tokens of `index_tokens`, separated by spaces; all other printable characters are token characters.
-- Token positions are not stored (detail=none): the text of each candidate is checked before it is a hit.
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', detail = none, columnsize = 0,
    tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);
-- Earliest and latest time of each block of rows, so that a search in a time range skips most of the log.
CREATE TABLE spans (block INTEGER PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL);
