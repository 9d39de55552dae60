-- Leases on sessions, by the server's clock. Every statement takes the tenant first.

-- name: take
WITH session AS (
    SELECT s.key FROM holdfast.sessions AS s WHERE s.tenant = $1 AND s.id = $2
), taken AS (
    INSERT INTO holdfast.leases AS l (session, name, owner, until)
    SELECT s.key, $3, $4, clock_timestamp() + make_interval(secs => $5) FROM session AS s
    ON CONFLICT (session, name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE l.owner = excluded.owner OR l.until <= clock_timestamp()
    RETURNING l.session
)
SELECT
    EXISTS (SELECT FROM session) AS known,
    EXISTS (SELECT FROM taken) AS taken,
    (SELECT l.owner FROM holdfast.leases AS l JOIN session AS s ON s.key = l.session WHERE l.name = $3) AS holder

-- name: release
WITH lowered AS (
    DELETE FROM holdfast.leases AS l USING holdfast.sessions AS s
    WHERE s.tenant = $1 AND s.id = $2 AND l.session = s.key AND l.name = $3 AND l.owner = $4
    RETURNING l.session
)
SELECT pg_notify('holdfast_lease', l.session::text) FROM lowered AS l

-- name: held
SELECT l.session, l.owner, extract(epoch FROM l.until - clock_timestamp())::float8 AS seconds
FROM holdfast.leases AS l JOIN holdfast.sessions AS s ON s.key = l.session
WHERE s.tenant = $1 AND s.id = $2 AND l.name = $3 AND l.until > clock_timestamp()
