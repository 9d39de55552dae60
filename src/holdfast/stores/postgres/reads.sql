-- Reads: slices of a session and its ancestors, session records, media, ids. Every statement takes the tenant first.

-- name: session
SELECT * FROM holdfast.session_1 AS s WHERE s.tenant = $1 AND s.id = $2

-- name: sessions
SELECT * FROM holdfast.session_1 AS s WHERE s.tenant = $1 ORDER BY s.created DESC, s.id DESC LIMIT $2

-- name: owned
SELECT * FROM holdfast.session_1 AS s
WHERE s.tenant = $1 AND s.owner = $3 ORDER BY s.created DESC, s.id DESC LIMIT $2

-- name: relatives
-- Other sessions with copies of the same events, of a session that was deleted.
SELECT DISTINCT ON (r.created, r.id) r.* FROM holdfast.sessions AS s
JOIN holdfast.origins AS o ON o.session = s.key
JOIN holdfast.origins AS p ON p.origin = o.origin AND p.session <> o.session
JOIN holdfast.sessions AS f ON f.key = p.session AND f.tenant = s.tenant
JOIN holdfast.session_1 AS r ON r.tenant = f.tenant AND r.id = f.id
WHERE s.tenant = $1 AND s.id = $2 ORDER BY r.created, r.id

-- name: forks
-- Forks of a fork that is being deleted count as forks of its parent.
WITH RECURSIVE below (key, tenant, id) AS (
    SELECT f.key, f.tenant, f.id FROM holdfast.sessions AS s JOIN holdfast.sessions AS f ON f.parent = s.key
    WHERE s.tenant = $1 AND s.id = $2
    UNION ALL
    SELECT f.key, f.tenant, f.id FROM below AS b JOIN holdfast.sessions AS f ON f.parent = b.key WHERE b.tenant <> $1
)
SELECT f.* FROM below AS b JOIN holdfast.session_1 AS f ON f.tenant = b.tenant AND f.id = b.id
WHERE b.tenant = $1 ORDER BY f.created, f.id

-- name: visible_parent
-- The nearest ancestor that is not being deleted.
SELECT s.id, c.until FROM holdfast.chain_1($1, $2) AS c JOIN holdfast.sessions AS s ON s.key = c.key
WHERE c.depth > 0 AND s.tenant = $1 ORDER BY c.depth LIMIT 1

-- name: exists
SELECT s.key FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = $2

-- name: oldest_of_lane
-- Separate from `oldest`, which reads all lanes: one statement for both takes three times as long for one lane.
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v
FROM holdfast.chain_1($1, $2) AS c
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x
    WHERE x.session = c.key AND x.lane = $7 AND x.seq > $3 AND x.seq <= least(c.until, $4)
      AND ($5::text[] IS NULL OR x.kind = ANY ($5))
    ORDER BY x.seq LIMIT $6
) AS e
ORDER BY e.seq LIMIT $6

-- name: newest_of_lane
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v
FROM holdfast.chain_1($1, $2) AS c
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x
    WHERE x.session = c.key AND x.lane = $7 AND x.seq > $3 AND x.seq <= least(c.until, $4)
      AND ($5::text[] IS NULL OR x.kind = ANY ($5))
    ORDER BY x.seq DESC LIMIT $6
) AS e
ORDER BY e.seq DESC LIMIT $6

-- name: oldest
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v
FROM holdfast.chain_1($1, $2) AS c
CROSS JOIN LATERAL holdfast.lanes_1(c.key) AS l
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x
    WHERE x.session = c.key AND x.lane = l.lane AND x.seq > $3 AND x.seq <= least(c.until, $4)
      AND ($5::text[] IS NULL OR x.kind = ANY ($5))
    ORDER BY x.seq LIMIT $6
) AS e
ORDER BY e.seq LIMIT $6

-- name: newest
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v
FROM holdfast.chain_1($1, $2) AS c
CROSS JOIN LATERAL holdfast.lanes_1(c.key) AS l
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x
    WHERE x.session = c.key AND x.lane = l.lane AND x.seq > $3 AND x.seq <= least(c.until, $4)
      AND ($5::text[] IS NULL OR x.kind = ANY ($5))
    ORDER BY x.seq DESC LIMIT $6
) AS e
ORDER BY e.seq DESC LIMIT $6

-- name: by_id
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.digest, e.rewritten
FROM holdfast.chain_1($1, $2) AS c
JOIN holdfast.events AS e ON e.session = c.key AND e.seq <= c.until
WHERE e.id = ANY ($3)
ORDER BY c.depth

-- name: media
SELECT DISTINCT ON (m.digest) m.digest, m.data
FROM holdfast.chain_1($1, $2) AS c
JOIN holdfast.media AS m ON m.session = c.key
WHERE m.digest = ANY ($3)
ORDER BY m.digest, c.depth

-- name: ids
SELECT DISTINCT i.id
FROM holdfast.chain_1($1, $2) AS c
CROSS JOIN LATERAL (
    SELECT e.id FROM holdfast.events AS e
    WHERE e.session = c.key AND e.id >= $3 AND e.id < $3 || chr(1114111) AND e.seq <= c.until
    ORDER BY e.id LIMIT $4
) AS i
ORDER BY i.id LIMIT $4

-- name: own
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.digest, e.rewritten
FROM holdfast.chain_1($1, $2) AS c
JOIN holdfast.events AS e ON e.session = c.key AND e.seq <= c.until
WHERE c.until > $3 AND e.seq > $3
ORDER BY e.seq

-- name: places
SELECT e.id, e.seq
FROM holdfast.chain_1($1, $2) AS c
JOIN holdfast.events AS e ON e.session = c.key AND e.seq <= c.until
ORDER BY c.depth
