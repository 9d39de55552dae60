-- Not a migration: made wherever this SQLite has FTS5, dropped and filled again at will.
-- The index holds tokens that `tokens.py` makes, parted by blanks: every other printable character belongs to one.
-- Where in a text a token stands is not kept (detail=none): the text itself is looked at before anything is a hit.
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', detail = none, columnsize = 0,
    tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);
-- The earliest and latest time in each run of rows: a search in a span of time passes over most of the log.
CREATE TABLE spans (block INTEGER PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL);
