-- Checks of a server, for `holdfast doctor`.

-- name: clock
SELECT extract(epoch FROM clock_timestamp())::float8

-- name: server
SELECT current_setting('server_version_num')::integer AS version,
    current_setting('server_version') AS version_text,
    current_setting('server_encoding') AS encoding,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('autovacuum') AS autovacuum,
    current_setting('max_connections')::integer AS most,
    (SELECT count(*) FROM pg_stat_activity) AS used,
    pg_is_in_recovery() AS standby,
    inet_server_addr() IS NOT NULL
        AND NOT coalesce((SELECT s.ssl FROM pg_stat_ssl AS s WHERE s.pid = pg_backend_pid()), false) AS in_the_clear,
    (SELECT count(*) FROM pg_extension AS e WHERE e.extname = 'plpgsql') AS plpgsql,
    (SELECT d.datcollate FROM pg_database AS d WHERE d.datname = current_database()) AS locale

-- name: rights
SELECT t.name
FROM unnest(ARRAY['sessions', 'records', 'lanes', 'events', 'media', 'leases', 'unindexed', 'search', 'spans'])
    AS t (name)
WHERE NOT has_schema_privilege('holdfast', 'USAGE')
   OR NOT has_table_privilege('holdfast.' || t.name, 'SELECT')
   OR NOT has_table_privilege('holdfast.' || t.name, 'INSERT')
   OR NOT has_table_privilege('holdfast.' || t.name, 'UPDATE')
   OR NOT has_table_privilege('holdfast.' || t.name, 'DELETE')

-- name: behind
SELECT count(*) FROM (SELECT FROM holdfast.unindexed LIMIT 10000) AS waiting
