-- The first schema: sessions, lanes, events, media, flags, the search index, and the functions that write them.
-- Applications from schema 1 on can work with it.

-- All names that callers choose are in the "C" collation: they sort as in every other store, whatever the locale.
-- There are no foreign keys to sessions: whoever writes holds the session's row, and a check would cost every append.

-- Narrow, because its row is updated by every append; no index names what changes, so these updates are HOT.
CREATE TABLE holdfast.sessions (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    unindexed  bigint, -- the first event that search does not know yet
    parent     bigint,
    parent_seq bigint NOT NULL,
    owner      text COLLATE "C",
    created    text COLLATE "C" NOT NULL,
    newest     text COLLATE "C" NOT NULL, -- the time of the last event
    epoch      text COLLATE "C", -- the checkpoint in force in the root lane, as its row in `lanes` has it
    UNIQUE (tenant, id)
) WITH (fillfactor = 60);
CREATE INDEX sessions_by_created ON holdfast.sessions (tenant, created, id);
CREATE INDEX sessions_by_owner ON holdfast.sessions (tenant, owner, created, id) WHERE owner IS NOT NULL;
CREATE INDEX sessions_by_parent ON holdfast.sessions (parent) WHERE parent IS NOT NULL;

-- What is wide and never changes.
CREATE TABLE holdfast.records (
    session bigint PRIMARY KEY,
    record  text NOT NULL
);

CREATE TABLE holdfast.lanes (
    session    bigint NOT NULL,
    lane       text COLLATE "C" NOT NULL,
    mark       bigint NOT NULL,
    epoch      text COLLATE "C",
    start      bigint NOT NULL,
    base       bigint NOT NULL,
    base_epoch text COLLATE "C",
    PRIMARY KEY (session, lane)
);

-- The usual append looks at nothing but the session's row, which it locks: so the root's checkpoint stands there too.
CREATE FUNCTION holdfast.in_force_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.sessions AS s SET epoch = NEW.epoch WHERE s.key = NEW.session;
    RETURN NULL;
END
$$;
CREATE TRIGGER in_force AFTER INSERT OR UPDATE ON holdfast.lanes
FOR EACH ROW WHEN (NEW.lane = '') EXECUTE FUNCTION holdfast.in_force_1();

-- Bodies are JSON in a text column: jsonb refuses \u0000 and loses the order of fields, and both types would be
-- parsed again by the server for nothing. A body comes back byte for byte.
CREATE TABLE holdfast.events (
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    v         bigint NOT NULL,
    id        text COLLATE "C" NOT NULL,
    lane      text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    time      text COLLATE "C" NOT NULL,
    epoch     text COLLATE "C",
    digest    text COLLATE "C" NOT NULL,
    rewritten text COLLATE "C",
    body      text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, lane, seq)
);
CREATE UNIQUE INDEX events_by_id ON holdfast.events (session, id);

-- A session as it is read: with its parent's name, what never changes, and its tips.
CREATE VIEW holdfast.session_1 AS
SELECT s.tenant, s.id, s.created, s.owner, s.version, p.id AS parent, s.parent_seq, r.record,
    (SELECT json_agg(json_build_array(l.lane, l.mark, l.epoch, l.start, l.base, l.base_epoch) ORDER BY l.lane)
     FROM holdfast.lanes AS l WHERE l.session = s.key)::text AS lanes
FROM holdfast.sessions AS s
JOIN holdfast.records AS r ON r.session = s.key
LEFT JOIN holdfast.sessions AS p ON p.key = s.parent;

CREATE TABLE holdfast.media (
    session bigint NOT NULL,
    digest  text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    data    text NOT NULL,
    PRIMARY KEY (session, digest)
);

-- The flags of sessions that somebody is at work on, by the server's clock.
CREATE TABLE holdfast.leases (
    session bigint PRIMARY KEY,
    owner   text COLLATE "C" NOT NULL,
    until   timestamptz NOT NULL
);

-- Sessions with events that search does not know yet, in the order in which they fell behind: the first append puts
-- one here, whoever fills the index takes it away.
CREATE TABLE holdfast.unindexed (
    tenant  text COLLATE "C" NOT NULL,
    place   bigint GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,
    PRIMARY KEY (tenant, place)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX unindexed_by_session ON holdfast.unindexed (session);

-- The words of each event. Rows are numbered about in the order in which they came, those of a session just so; a run
-- of them is a block.
CREATE SEQUENCE holdfast.search_rows;
CREATE TABLE holdfast.search (
    row     bigint PRIMARY KEY,
    session bigint NOT NULL,
    lane    text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    words   tsvector NOT NULL
);
CREATE UNIQUE INDEX search_by_event ON holdfast.search (session, seq);
CREATE INDEX search_by_words ON holdfast.search USING gin (words) WITH (gin_pending_list_limit = 256);

-- The earliest and latest time in each block: a search in a span of time passes over most of the log.
CREATE TABLE holdfast.spans (
    block bigint PRIMARY KEY,
    first text COLLATE "C" NOT NULL,
    last  text COLLATE "C" NOT NULL
);

-- A session and its ancestors, each with the last seq that the session sees of it.
CREATE FUNCTION holdfast.chain_1(_tenant text, _session text)
RETURNS TABLE (key bigint, until bigint, depth integer) LANGUAGE sql STABLE ROWS 1 AS $$
    WITH RECURSIVE chain (key, parent, parent_seq, until, depth) AS (
        SELECT s.key, s.parent, s.parent_seq, 9223372036854775807, 0
        FROM holdfast.sessions AS s WHERE s.tenant = _tenant AND s.id = _session
        UNION ALL
        SELECT s.key, s.parent, s.parent_seq, least(chain.until, chain.parent_seq), chain.depth + 1
        FROM chain JOIN holdfast.sessions AS s ON s.key = chain.parent
    )
    SELECT chain.key, chain.until, chain.depth FROM chain
$$;

-- The lanes in which a session has events of its own: the index is asked once for each, whatever its length.
CREATE FUNCTION holdfast.lanes_1(_key bigint)
RETURNS TABLE (lane text) LANGUAGE sql STABLE ROWS 2 AS $$
    WITH RECURSIVE used (lane) AS (
        SELECT min(e.lane) FROM holdfast.events AS e WHERE e.session = _key
        UNION ALL
        SELECT (SELECT min(e.lane) FROM holdfast.events AS e WHERE e.session = _key AND e.lane > used.lane)
        FROM used WHERE used.lane IS NOT NULL
    )
    SELECT used.lane FROM used WHERE used.lane IS NOT NULL
$$;

-- Append events of one lane. The session's row is moved first, which is both the compare-and-set and the lock: whoever
-- waits for it then sees everything that was written before.
-- Says the version and, after a blank, the checkpoint in force. Nothing where the session is not there or its version
-- is not the one that was named. Anything else that stands in the way (an id that is known, a mark that moved) is an
-- error, so that nothing of it happens.
CREATE FUNCTION holdfast.append_1(
    _tenant text, _session text, _lane text, _version bigint, _mark bigint,
    _ids text[], _kinds text[], _times text[], _vs bigint[], _digests text[], _bodies text[],
    _tip boolean, _epoch text, _start bigint,
    _media text[], _data text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    _count     bigint := cardinality(_ids);
    _key       bigint;
    _parent    bigint;
    _last      bigint;
    _unindexed bigint;
    _stands    bigint;
    _force     text;
BEGIN
    UPDATE holdfast.sessions AS s
    SET version = s.version + _count, newest = _times[_count], unindexed = coalesce(s.unindexed, s.version + 1)
    WHERE s.tenant = _tenant AND s.id = _session AND (_version IS NULL OR s.version = _version)
    RETURNING s.key, s.parent, s.version, s.unindexed INTO _key, _parent, _last, _unindexed;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    SELECT l.mark, l.epoch INTO _stands, _force FROM holdfast.lanes AS l WHERE l.session = _key AND l.lane = _lane;
    IF NOT FOUND AND _lane <> '' THEN
        INSERT INTO holdfast.lanes (session, lane, mark, epoch, start, base, base_epoch)
        VALUES (_key, _lane, 0, NULL, 0, _last - _count,
                (SELECT l.epoch FROM holdfast.lanes AS l WHERE l.session = _key AND l.lane = ''));
    END IF;
    IF _mark IS NOT NULL OR _parent IS NOT NULL THEN
        IF _mark <> coalesce(_stands, 0) THEN
            RAISE EXCEPTION 'The mark of the lane has moved.' USING ERRCODE = 'HF001';
        END IF;
        PERFORM FROM holdfast.chain_1(_tenant, _session) AS c
        JOIN holdfast.events AS e ON e.session = c.key AND e.seq <= c.until
        WHERE c.depth > 0 AND e.id = ANY (_ids);
        IF FOUND THEN
            RAISE EXCEPTION 'An event of this id was inherited.' USING ERRCODE = 'HF001';
        END IF;
    END IF;

    INSERT INTO holdfast.events (session, seq, v, id, lane, kind, time, epoch, digest, body)
    SELECT _key, _last - _count + e.place, e.v, e.id, _lane, e.kind, e.time, _force, e.digest, e.body
    FROM unnest(_ids, _kinds, _times, _vs, _digests, _bodies)
        WITH ORDINALITY AS e (id, kind, time, v, digest, body, place);
    IF _unindexed = _last - _count + 1 THEN
        INSERT INTO holdfast.unindexed (tenant, session) VALUES (_tenant, _key);
    END IF;
    IF _tip THEN
        INSERT INTO holdfast.lanes AS l (session, lane, mark, epoch, start, base, base_epoch)
        VALUES (_key, _lane, _last, _epoch, _start, 0, NULL)
        ON CONFLICT (session, lane) DO UPDATE SET mark = excluded.mark, epoch = excluded.epoch, start = excluded.start;
    END IF;
    IF _media IS NOT NULL THEN
        INSERT INTO holdfast.media (session, digest, seq, data)
        SELECT _key, m.digest, _last, m.data FROM unnest(_media, _data) AS m (digest, data)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN concat_ws(' ', _last, _force);
END
$$;

-- The next rows of the search index. Applications have rights on tables, and need none on the sequence.
CREATE FUNCTION holdfast.rows_1(_count integer) RETURNS SETOF bigint LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT nextval('holdfast.search_rows') FROM generate_series(1, _count)
$$;

-- Whoever removes or rewrites what is there does so alone; those who fill the search index, only beside each other.
-- Taken before any row.
CREATE FUNCTION holdfast.alone_1() RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(1752132964, 1)
$$;
CREATE FUNCTION holdfast.beside_1() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_try_advisory_xact_lock_shared(1752132964, 1)
$$;

-- Remove a session; its forks first get a copy of what they share, and its parent. With `_before`, only if nothing
-- was appended to it since. Says whether there was one.
CREATE FUNCTION holdfast.delete_1(_tenant text, _session text, _before text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _gone holdfast.sessions;
    _fork holdfast.sessions;
BEGIN
    PERFORM holdfast.alone_1();
    SELECT * INTO _gone FROM holdfast.sessions AS s
    WHERE s.tenant = _tenant AND s.id = _session AND (_before IS NULL OR s.newest < _before) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR _fork IN SELECT * FROM holdfast.sessions AS s WHERE s.parent = _gone.key ORDER BY s.key FOR UPDATE LOOP
        INSERT INTO holdfast.events (session, seq, v, id, lane, kind, time, epoch, digest, rewritten, body)
        SELECT _fork.key, e.seq, e.v, e.id, e.lane, e.kind, e.time, e.epoch, e.digest, e.rewritten, e.body
        FROM holdfast.events AS e WHERE e.session = _gone.key AND e.seq <= _fork.parent_seq;
        INSERT INTO holdfast.media (session, digest, seq, data)
        SELECT _fork.key, m.digest, m.seq, m.data
        FROM holdfast.media AS m WHERE m.session = _gone.key AND m.seq <= _fork.parent_seq
        ON CONFLICT DO NOTHING;
        UPDATE holdfast.sessions AS s
        SET parent = _gone.parent, parent_seq = least(s.parent_seq, _gone.parent_seq), unindexed = 1
        WHERE s.key = _fork.key;
        INSERT INTO holdfast.unindexed (tenant, session) VALUES (_tenant, _fork.key) ON CONFLICT (session) DO NOTHING;
    END LOOP;
    DELETE FROM holdfast.unindexed AS u WHERE u.session = _gone.key;
    DELETE FROM holdfast.search AS x WHERE x.session = _gone.key;
    DELETE FROM holdfast.events AS e WHERE e.session = _gone.key;
    DELETE FROM holdfast.media AS m WHERE m.session = _gone.key;
    DELETE FROM holdfast.lanes AS l WHERE l.session = _gone.key;
    DELETE FROM holdfast.records AS r WHERE r.session = _gone.key;
    DELETE FROM holdfast.leases AS l WHERE l.session = _gone.key;
    DELETE FROM holdfast.sessions AS s WHERE s.key = _gone.key;
    PERFORM pg_notify('holdfast_lease', _gone.key::text);
    RETURN true;
END
$$;
