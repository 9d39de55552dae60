-- Writes. Every statement takes the tenant first.

-- name: append
SELECT holdfast.append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: append_one
-- One event in the root lane of a session without ancestors: everything needed is in the session's row. Its update is
-- both the compare-and-set and the lock; nothing is written to a session with a parent or another version.
WITH session AS (
    UPDATE holdfast.sessions AS s
    SET version = s.version + 1, newest = $6, unindexed = coalesce(s.unindexed, s.version + 1)
    WHERE s.tenant = $1 AND s.id = $2 AND s.parent IS NULL AND ($3::bigint IS NULL OR s.version = $3)
    RETURNING s.key, s.version, s.unindexed, s.epoch
), behind AS (
    INSERT INTO holdfast.unindexed (tenant, session) SELECT $1, s.key FROM session AS s WHERE s.unindexed = s.version
)
INSERT INTO holdfast.events (session, seq, v, id, lane, kind, time, epoch, digest, body)
SELECT s.key, s.version, $7, $4, '', $5, $6, s.epoch, $8, $9 FROM session AS s
RETURNING seq, epoch

-- name: create
WITH parent AS (
    SELECT p.key FROM holdfast.sessions AS p
    WHERE p.tenant = $1 AND p.id = $4 AND p.version >= $5 FOR KEY SHARE
), session AS (
    INSERT INTO holdfast.sessions (tenant, id, version, parent, parent_seq, owner, created, newest)
    SELECT $1, $2, $3, (SELECT key FROM parent), $5, $6, $7, $7
    WHERE $4::text IS NULL OR EXISTS (SELECT FROM parent)
    ON CONFLICT (tenant, id) DO NOTHING
    RETURNING key
), tips AS (
    INSERT INTO holdfast.lanes (session, lane, mark, epoch, start, base, base_epoch)
    SELECT s.key, t.* FROM session AS s
    CROSS JOIN unnest($9::text[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::text[]) AS t
)
INSERT INTO holdfast.records (session, record) SELECT s.key, $8 FROM session AS s RETURNING session

-- name: lock_parent
SELECT FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = $2 FOR KEY SHARE

-- name: version
SELECT s.version FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = $2

-- name: lock
SELECT s.key, s.version FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = $2 FOR NO KEY UPDATE

-- name: tips
SELECT l.lane, l.mark, l.epoch, l.start, l.base, l.base_epoch
FROM holdfast.sessions AS s JOIN holdfast.lanes AS l ON l.session = s.key
WHERE s.tenant = $1 AND s.id = $2 AND l.lane = ANY ($3)

-- name: add
WITH session AS (
    UPDATE holdfast.sessions AS s SET version = $3, newest = $4, unindexed = coalesce(s.unindexed, s.version + 1)
    WHERE s.tenant = $1 AND s.id = $2 RETURNING s.key
), places AS (
    INSERT INTO holdfast.unindexed (tenant, session) SELECT $1, s.key FROM session AS s
    ON CONFLICT (session) DO NOTHING
)
INSERT INTO holdfast.events (session, seq, v, id, lane, kind, time, epoch, digest, body)
SELECT s.key, e.seq, e.v, e.id, e.lane, e.kind, e.time, e.epoch, e.digest, e.body
FROM session AS s
CROSS JOIN unnest(
    $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[]
) AS e (seq, id, lane, kind, time, epoch, v, digest, body)

-- name: set_tips
INSERT INTO holdfast.lanes (session, lane, mark, epoch, start, base, base_epoch)
SELECT s.key, t.* FROM holdfast.sessions AS s
CROSS JOIN unnest($3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[]) AS t
WHERE s.tenant = $1 AND s.id = $2
ON CONFLICT (session, lane) DO UPDATE SET mark = excluded.mark, epoch = excluded.epoch, start = excluded.start

-- name: add_media
INSERT INTO holdfast.media (session, digest, seq, data)
SELECT s.key, m.digest, $3, m.data FROM holdfast.sessions AS s
CROSS JOIN unnest($4::text[], $5::text[]) AS m (digest, data)
WHERE s.tenant = $1 AND s.id = $2
ON CONFLICT DO NOTHING

-- name: lock_all
SELECT s.id, s.version FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = ANY ($2) ORDER BY s.key FOR UPDATE

-- name: all_tips
SELECT l.lane, l.mark, l.epoch, l.start, l.base, l.base_epoch
FROM holdfast.sessions AS s JOIN holdfast.lanes AS l ON l.session = s.key
WHERE s.tenant = $1 AND s.id = $2

-- name: forks
SELECT f.id, f.parent_seq
FROM holdfast.sessions AS s JOIN holdfast.sessions AS f ON f.parent = s.key
WHERE s.tenant = $1 AND s.id = $2 ORDER BY f.key

-- name: relatives
SELECT DISTINCT f.id FROM holdfast.sessions AS s
JOIN holdfast.origins AS o ON o.session = s.key
JOIN holdfast.origins AS p ON p.origin = o.origin AND p.session <> o.session
JOIN holdfast.sessions AS f ON f.key = p.session AND f.tenant = s.tenant
WHERE s.tenant = $1 AND s.id = $2

-- name: own_events
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.digest, e.rewritten
FROM holdfast.sessions AS s JOIN holdfast.events AS e ON e.session = s.key
WHERE s.tenant = $1 AND s.id = $2 AND e.id = ANY ($3)

-- name: rewrite
WITH changed AS (
    UPDATE holdfast.events AS e SET body = n.body, digest = $6, rewritten = n.rewritten
    FROM holdfast.sessions AS s, unnest($3::text[], $4::text[], $5::text[]) AS n (id, body, rewritten)
    WHERE s.tenant = $1 AND s.id = $2 AND e.session = s.key AND e.id = n.id
    RETURNING e.*
), forgotten AS (
    DELETE FROM holdfast.search AS x USING changed AS e WHERE x.session = e.session AND x.seq = e.seq
    RETURNING x.session, x.seq
)
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.session, s.owner
FROM changed AS e
JOIN forgotten AS f ON f.session = e.session AND f.seq = e.seq
JOIN holdfast.sessions AS s ON s.key = e.session
ORDER BY e.seq

-- name: forget_media
DELETE FROM holdfast.media AS m USING holdfast.sessions AS s
WHERE s.tenant = $1 AND s.id = $2 AND m.session = s.key AND m.digest = ANY ($3)

-- name: set_record
UPDATE holdfast.records AS r SET record = $3 FROM holdfast.sessions AS s
WHERE s.tenant = $1 AND s.id = $2 AND r.session = s.key

-- name: expired
SELECT s.id FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.newest < $2 ORDER BY s.newest, s.id
