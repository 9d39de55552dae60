-- The search index: filling and querying it. Every statement takes the tenant first.

-- name: try_shared_lock
SELECT holdfast.beside_1()

-- name: behind
SELECT EXISTS (SELECT FROM holdfast.unindexed AS u WHERE u.tenant = $1)

-- name: next
-- Skips sessions that another process is indexing, those being deleted, and forks that still get copies of these.
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.session, s.owner
FROM (
    SELECT u.place, u.session FROM holdfast.unindexed AS u
    JOIN holdfast.sessions AS s ON s.key = u.session AND s.tenant = $1
    LEFT JOIN holdfast.sessions AS p ON p.key = s.parent AND p.tenant <> $1
    WHERE u.tenant = $1 AND p.key IS NULL ORDER BY u.place LIMIT $3 FOR UPDATE OF u SKIP LOCKED
) AS u
JOIN holdfast.sessions AS s ON s.key = u.session AND s.tenant = $1
CROSS JOIN LATERAL (
    SELECT x.* FROM holdfast.lanes_1(s.key) AS l
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.events AS y
        WHERE y.session = s.key AND y.lane = l.lane AND y.seq >= s.unindexed ORDER BY y.seq LIMIT $2
    ) AS x
    ORDER BY x.seq LIMIT $2
) AS e
ORDER BY u.place, e.seq LIMIT $2

-- name: rows
SELECT holdfast.rows_1($1)

-- name: last_row
SELECT coalesce(max(x.row), 0) FROM holdfast.search AS x

-- name: add
INSERT INTO holdfast.search (row, session, lane, seq, words)
SELECT t.row, t.session, t.lane, t.seq, array_to_tsvector(string_to_array(t.words, ' '))
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[]) AS t (row, session, lane, seq, words)
ON CONFLICT (session, seq) DO NOTHING

-- name: span
INSERT INTO holdfast.spans AS s (block, first, last)
SELECT t.block, min(t.time), max(t.time) FROM unnest($1::bigint[], $2::text[]) AS t (block, time) GROUP BY t.block
ON CONFLICT (block) DO UPDATE SET first = least(s.first, excluded.first), last = greatest(s.last, excluded.last)

-- name: done
WITH moved AS (
    UPDATE holdfast.sessions AS s SET unindexed = CASE WHEN s.version > d.seq THEN greatest(s.unindexed, d.seq + 1) END
    FROM unnest($2::bigint[], $3::bigint[]) AS d (session, seq)
    WHERE s.tenant = $1 AND s.key = d.session
    RETURNING s.key, s.unindexed
)
DELETE FROM holdfast.unindexed AS u USING moved AS m WHERE u.session = m.key AND m.unindexed IS NULL

-- name: earlier
SELECT n.place, e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[]) AS n (place, session, lane, seq, call)
JOIN holdfast.sessions AS s ON s.key = n.session AND (s.tenant = $1 OR s.tenant = chr(1) || 'x' || $1)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x
    WHERE x.session = n.session AND x.lane = n.lane AND x.seq < n.seq AND x.seq >= n.seq - $7
      AND strpos(x.body, n.call) > 0
) AS e
ORDER BY n.place, e.seq DESC

-- name: plainly
SET LOCAL jit = off

-- name: scope
SELECT c.key, c.until, s.owner FROM holdfast.chain_1($1, $2) AS c
JOIN holdfast.sessions AS s ON s.key = c.key ORDER BY c.depth

-- name: starts
SELECT l.lane, l.start FROM holdfast.lanes AS l JOIN holdfast.sessions AS s ON s.key = l.session
WHERE s.tenant = $1 AND s.id = $2

-- name: blocks
SELECT min(s.block), max(s.block) FROM holdfast.spans AS s
WHERE ($1::text IS NULL OR s.last >= $1) AND ($2::text IS NULL OR s.first <= $2)

-- name: tail
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, e.session, s.id AS name, l.start
FROM holdfast.unindexed AS u
JOIN holdfast.sessions AS s ON s.key = u.session
CROSS JOIN LATERAL holdfast.lanes_1(s.key) AS n
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS x WHERE x.session = s.key AND x.lane = n.lane AND x.seq >= s.unindexed
) AS e
LEFT JOIN holdfast.lanes AS l ON l.session = e.session AND l.lane = e.lane
WHERE u.tenant = $1 AND (s.tenant = $1 OR $2::bigint[] IS NOT NULL AND s.tenant = chr(1) || 'x' || $1)
  AND NOT EXISTS (SELECT FROM holdfast.search AS i WHERE i.session = e.session AND i.seq = e.seq)
  AND ($2::bigint[] IS NULL OR u.session = ANY ($2))
  AND ($2::bigint[] IS NULL OR EXISTS (
      SELECT FROM unnest($2, $3::bigint[]) AS c (key, until) WHERE c.key = e.session AND c.until >= e.seq))
  AND ($4::text IS NULL OR s.owner = $4)
  AND ($5::text[] IS NULL OR e.kind = ANY ($5))
  AND ($6::text IS NULL OR e.lane = $6)
  AND ($7::text IS NULL OR e.time >= $7)
  AND ($8::text IS NULL OR e.time <= $8)
  AND (octet_length(e.body) > length(e.body) OR strpos(e.body, '\u') > 0
       OR (SELECT bool_and(strpos(lower(e.body), w) > 0) FROM unnest($9::text[]) AS w) IS NOT FALSE)

-- name: edge
-- `+ 0` keeps the planner from scanning all rows of the range: the index of words covers the range by its block tags.
WITH found AS MATERIALIZED (
    SELECT x.row FROM holdfast.search AS x WHERE x.words @@ $1::tsquery AND x.row + 0 BETWEEN $2 AND $3
)
SELECT count(*), min(n.row) FROM (SELECT f.row FROM found AS f ORDER BY f.row DESC LIMIT $4) AS n

-- name: found
-- Read by a cursor: index rows are looked up and sorted at once, events are fetched one by one in the order of `newest`
-- and only as far as needed, so nothing is sorted after that.
WITH found AS MATERIALIZED (
    SELECT x.row, x.session, x.lane, x.seq FROM holdfast.search AS x
    WHERE x.words @@ $10::tsquery AND x.row + 0 BETWEEN $11 AND $12
), newest AS MATERIALIZED (
    SELECT * FROM found AS f ORDER BY f.row DESC
)
SELECT e.id, e.kind, e.time, e.body, e.lane, e.seq, e.epoch, e.v, f.session, s.id AS name, l.start, f.row
FROM newest AS f
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.events AS y
    WHERE y.session = f.session AND y.lane = f.lane AND y.seq = f.seq
      AND ($5::text[] IS NULL OR y.kind = ANY ($5))
      AND ($6::text IS NULL OR y.lane = $6)
      AND ($7::text IS NULL OR y.time >= $7)
      AND ($8::text IS NULL OR y.time <= $8)
      AND (octet_length(y.body) > length(y.body) OR strpos(y.body, '\u') > 0
           OR (SELECT bool_and(strpos(lower(y.body), w) > 0) FROM unnest($9::text[]) AS w) IS NOT FALSE)
    LIMIT 1
) AS e
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.sessions AS y
    WHERE y.key = f.session AND (y.tenant = $1 OR $2::bigint[] IS NOT NULL AND y.tenant = chr(1) || 'x' || $1)
      AND ($4::text IS NULL OR y.owner = $4) LIMIT 1
) AS s
LEFT JOIN LATERAL (
    SELECT * FROM holdfast.lanes AS y WHERE y.session = f.session AND y.lane = f.lane LIMIT 1
) AS l ON true
WHERE $2::bigint[] IS NULL OR EXISTS (
    SELECT FROM unnest($2, $3::bigint[]) AS c (key, until) WHERE c.key = f.session AND c.until >= e.seq)
