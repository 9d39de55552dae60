-- The table of applied migrations.

-- name: there
SELECT to_regclass('holdfast.migrations') IS NOT NULL

-- name: applied
SELECT m.number, m.digest, m.oldest FROM holdfast.migrations AS m ORDER BY m.number

-- name: alone
SELECT pg_advisory_xact_lock(1752132964, 0)

-- name: make
DO $$
BEGIN
    IF to_regnamespace('holdfast') IS NULL THEN
        CREATE SCHEMA holdfast;
    END IF;
    IF to_regclass('holdfast.migrations') IS NULL THEN
        CREATE TABLE holdfast.migrations (
            number  integer PRIMARY KEY,
            why     text NOT NULL,
            digest  text NOT NULL,
            oldest  integer NOT NULL,
            applied timestamptz NOT NULL DEFAULT now()
        );
    END IF;
END
$$

-- name: note
INSERT INTO holdfast.migrations (number, why, digest, oldest) VALUES ($1, $2, $3, $4)
