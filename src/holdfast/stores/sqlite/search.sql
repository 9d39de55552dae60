-- Not a migration: made wherever this SQLite has FTS5 with the trigram tokenizer, dropped and filled again at will.
-- Without content of its own; trigrams find substrings in every script, words without spaces included.
CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5 (text, content = '', tokenize = 'trigram');
