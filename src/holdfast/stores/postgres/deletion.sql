-- Deletion in pieces. Every statement takes the tenant first.
-- Hidden sessions belong to the tenant chr(1) || 'x' || tenant, and their ids end in chr(1) || 'x' || key: texts that no
-- caller can name, because chr(1) is stored as two characters.

-- name: limit_waiting
SELECT set_config('lock_timeout', $1, true)

-- name: alone
SELECT holdfast.alone_1()

-- name: hide
WITH hidden AS (
    UPDATE holdfast.sessions AS s SET tenant = chr(1) || 'x' || $1, id = s.id || chr(1) || 'x' || s.key
    WHERE s.tenant = $1 AND s.id = $2 AND ($3::text IS NULL OR s.newest < $3)
    RETURNING s.key
), released AS (
    DELETE FROM holdfast.leases AS l USING hidden AS h WHERE l.session = h.key
), origin AS (
    INSERT INTO holdfast.origins (session, origin) SELECT h.key, $4 FROM hidden AS h
)
SELECT pg_notify('holdfast_lease', h.key::text) FROM hidden AS h

-- name: begun
SELECT EXISTS (
    SELECT FROM holdfast.sessions AS s
    WHERE s.tenant = chr(1) || 'x' || $1 AND s.id > $2 || chr(1) || 'x' AND s.id < $2 || chr(1) || 'y'
)

-- name: any_hidden
SELECT EXISTS (SELECT FROM holdfast.sessions AS s WHERE s.tenant = chr(1) || 'x' || $1)

-- name: next_hidden
-- Forks before their parents: a fork that is deleted as well needs no copies.
SELECT s.key, s.parent, s.parent_seq, s.version FROM holdfast.sessions AS s
WHERE s.tenant = chr(1) || 'x' || $1
  AND NOT EXISTS (SELECT FROM holdfast.sessions AS f WHERE f.parent = s.key AND f.tenant = s.tenant)
ORDER BY s.key LIMIT 1 FOR UPDATE

-- name: next_fork
SELECT f.key, f.parent_seq FROM holdfast.sessions AS f
WHERE f.tenant = $1 AND f.parent = $2 ORDER BY f.key LIMIT 1 FOR NO KEY UPDATE

-- name: batch
-- The seq before the newest events up to $3: at most $5 of them, and no more than $6 bytes after the first.
SELECT coalesce(min(b.seq), $4::bigint + 1) - 1 FROM (
    SELECT e.seq, sum(octet_length(e.body)) OVER (ORDER BY e.seq DESC) - octet_length(e.body) AS before
    FROM holdfast.sessions AS s
    CROSS JOIN LATERAL holdfast.lanes_1(s.key) AS l
    CROSS JOIN LATERAL (
        SELECT y.seq, y.body FROM holdfast.events AS y
        WHERE y.session = s.key AND y.lane = l.lane AND y.seq <= $3 AND y.seq > greatest($3::bigint - $5::bigint, $4)
    ) AS e
    WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2
) AS b WHERE b.before <= $6::bigint

-- name: missing_media
SELECT m.digest FROM holdfast.sessions AS s JOIN holdfast.media AS m ON m.session = s.key
WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2 AND m.seq <= $4
  AND NOT EXISTS (SELECT FROM holdfast.media AS o WHERE o.session = $3 AND o.digest = m.digest)
LIMIT 1

-- name: copy_media
INSERT INTO holdfast.media (session, digest, seq, data)
SELECT $3::bigint, m.digest, m.seq, m.data FROM holdfast.sessions AS s JOIN holdfast.media AS m ON m.session = s.key
WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2 AND m.digest = $4
ON CONFLICT DO NOTHING

-- name: copy_origins
INSERT INTO holdfast.origins (session, origin)
SELECT $3::bigint, o.origin FROM holdfast.sessions AS s JOIN holdfast.origins AS o ON o.session = s.key
WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2
ON CONFLICT DO NOTHING

-- name: copy_events
INSERT INTO holdfast.events (session, seq, v, id, lane, kind, time, epoch, digest, rewritten, body)
SELECT $3::bigint, e.seq, e.v, e.id, e.lane, e.kind, e.time, e.epoch, e.digest, e.rewritten, e.body
FROM holdfast.sessions AS s
CROSS JOIN LATERAL holdfast.lanes_1(s.key) AS l
JOIN holdfast.events AS e ON e.session = s.key AND e.lane = l.lane AND e.seq > $4 AND e.seq <= $5
WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2

-- name: set_parent
WITH fork AS (
    UPDATE holdfast.sessions AS f
    SET parent = $3, parent_seq = $4, unindexed = least(coalesce(f.unindexed, f.version + 1), $4::bigint + 1)
    WHERE f.tenant = $1 AND f.key = $2 RETURNING f.key
)
INSERT INTO holdfast.unindexed (tenant, session) SELECT $1, f.key FROM fork AS f ON CONFLICT (session) DO NOTHING

-- name: remove_events
-- The version of a hidden session is the seq of its newest event that is left.
WITH session AS (
    UPDATE holdfast.sessions AS s SET version = $3 WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2
    RETURNING s.key
), removed AS (
    DELETE FROM holdfast.events AS e USING session AS s, holdfast.lanes_1($2) AS l
    WHERE e.session = s.key AND e.lane = l.lane AND e.seq > $3 AND e.seq <= $4
)
DELETE FROM holdfast.search AS x USING session AS s WHERE x.session = s.key AND x.seq > $3 AND x.seq <= $4

-- name: remove_media
DELETE FROM holdfast.media AS m USING holdfast.sessions AS s
WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2 AND m.session = s.key
  AND m.digest IN (SELECT o.digest FROM holdfast.media AS o WHERE o.session = $2 LIMIT $3::bigint)

-- name: remove_session
WITH session AS (
    DELETE FROM holdfast.sessions AS s WHERE s.tenant = chr(1) || 'x' || $1 AND s.key = $2 RETURNING s.key
), searched AS (
    DELETE FROM holdfast.search AS x USING session AS s WHERE x.session = s.key
), unindexed AS (
    DELETE FROM holdfast.unindexed AS u USING session AS s WHERE u.session = s.key
), lanes AS (
    DELETE FROM holdfast.lanes AS l USING session AS s WHERE l.session = s.key
), leases AS (
    DELETE FROM holdfast.leases AS l USING session AS s WHERE l.session = s.key
), origins AS (
    DELETE FROM holdfast.origins AS o USING session AS s WHERE o.session = s.key
)
DELETE FROM holdfast.records AS r USING session AS s WHERE r.session = s.key
