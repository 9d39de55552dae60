"""Known ways to break the promises of a store and of its sessions, each with the tests that must notice."""

from __future__ import annotations

from .mutation import Mutation, mutation

CONFORMANCE = "tests/stores/test_store_conformance.py"
LEASES = "tests/stores/test_leases.py"
SQLITE = "tests/stores/test_sqlite_store.py"
JSONL = "tests/stores/test_jsonl_store.py"
POSTGRES = "tests/stores/test_postgres_store.py"
REDACTION = "tests/sessions/test_redaction.py"
MARKS = "tests/sessions/test_marks.py"
KILL = "tests/stress/test_kill.py::test_operation_killed_at_a_system_call_is_done_or_not"

STORES = (
    # -- acknowledged means durable ----------------------------------------------------------------------
    mutation(
        "SQLite acknowledges before the commit",
        "stores/sqlite/writer.py",
        '            connection.execute("COMMIT")\n            self._unindexed_jobs += len(jobs)',
        '            _deliver_results(jobs)\n            connection.execute("COMMIT")\n'
        "            self._unindexed_jobs += len(jobs)",
        f"{SQLITE}::TestGroupCommit::test_append_is_not_acknowledged_before_the_commit",
    ),
    mutation(
        "SQLite does not wait for the disk (synchronous=OFF)",
        "stores/sqlite/connection.py",
        '"FULL": "PRAGMA synchronous = FULL"',
        '"FULL": "PRAGMA synchronous = OFF"',
        f"{KILL}[sqlite]",
    ),
    mutation(
        "JSONL appends without fsync",
        "io/files.py",
        "            os.fsync(handle)\n        except OSError:",
        "            pass\n        except OSError:",
        f"{KILL}[jsonl]",
    ),
    mutation(
        "JSONL replaces a file that is not synced",
        "io/files.py",
        "    file.flush()\n    os.fsync(file.fileno())\n\n\ndef sync_folder",
        "    file.flush()\n\n\ndef sync_folder",
        f"{KILL}[jsonl]",
    ),
    mutation(
        "JSONL does not sync the folder after a rename",
        "io/files.py",
        "    handle = os.open(path, os.O_RDONLY)\n    try:\n        os.fsync(handle)",
        "    handle = os.open(path, os.O_RDONLY)\n    try:\n        pass",
        f"{KILL}[jsonl]",
    ),
    mutation(
        "SQLite goes on writing to a deleted file",
        "stores/sqlite/writer.py",
        "elif self._file is not None and _file_identity(self._path) != self._file:",
        "elif False:",
        f"{SQLITE} -k deleted_file",
    ),
    # -- all of a batch or nothing -----------------------------------------------------------------------
    Mutation(
        "SQLite commits a batch event by event",
        "stores/sqlite/writes.py",
        (
            (
                "        connection.execute(_INSERT_EVENT, row)\n",
                "        connection.execute(_INSERT_EVENT, row)\n"
                '        connection.execute("UPDATE sessions SET version = ? WHERE key = ?", (e.seq, key))\n'
                '        connection.execute("COMMIT")\n'
                '        connection.execute("BEGIN IMMEDIATE")\n',
            ),
            (
                "    moved = connection.execute(_SET_VERSION, (plan.result.version, key, version)).rowcount",
                "    moved = 1",
            ),
        ),
        (f"{SQLITE}::TestGroupCommit::test_append_that_fails_in_the_middle_writes_nothing",),
    ),
    mutation(
        "JSONL writes a batch as single appends",
        "stores/jsonl/writes.py",
        "LogLine(entry, more=number < last)",
        "LogLine(entry, more=False)",
        f"{JSONL} -k torn_append",
    ),
    mutation(
        "JSONL replaces files one by one, without a journal",
        "stores/jsonl/folder.py",
        "            files.replace_durably(self._journal, [msgspec.json.encode(names)])\n",
        "            for path in contents:\n                os.replace(f'{path}.new', path)\n            del names\n",
        f"{JSONL} -k survives_a_crash",
    ),
    mutation(
        "a failed job of a group commit fails the others",
        "stores/sqlite/writer.py",
        "            if len(jobs) == 1:\n",
        "            for job in jobs:\n                job.error = self._translate(error)\n            if jobs:\n",
        f"{SQLITE} -k failing_job",
    ),
    # -- known ids ---------------------------------------------------------------------------------------
    mutation(
        "known ids are ignored",
        "stores/append.py",
        "        earlier = known.get(entry.event.id) or fresh.get(entry.event.id)",
        "        earlier = fresh.get(entry.event.id)",
        f"{CONFORMANCE} -k 'retry and memory'",
    ),
    mutation(
        "a known id with other content is accepted",
        "stores/append.py",
        "        elif earlier.digest not in (entry.digest, REWRITTEN):",
        "        elif False:",
        f"{CONFORMANCE} -k other_content",
    ),
    mutation(
        "PostgreSQL forgets that a broken attempt may have written",
        "stores/postgres/connections.py",
        '                    unsure = unsure or (action == "reconnect" and connection is not None)',
        "                    unsure = False",
        f"{POSTGRES} -k lost_reply",
    ),
    # -- compare-and-set ---------------------------------------------------------------------------------
    mutation(
        "`after` is not compared",
        "stores/append.py",
        "    if after is not None and after != version:",
        "    if False:",
        f"{CONFORMANCE} -k stale_after",
    ),
    mutation(
        "the version of `Unchanged` is not compared",
        "stores/append.py",
        "    if when.version is not None and when.version != version:",
        "    if False:",
        f"{CONFORMANCE} -k strict_condition",
    ),
    mutation(
        "the mark of `Unchanged` is not compared",
        "stores/append.py",
        "    return when.mark is None or when.mark == tips.get(lane_key(when.lane), NO_TIP).mark",
        "    return True",
        f"{CONFORMANCE} -k rebase_condition",
    ),
    mutation(
        "PostgreSQL does not compare the version of one event",
        "stores/postgres/writes.sql",
        "s.parent IS NULL AND ($3::bigint IS NULL OR s.version = $3)",
        "s.parent IS NULL AND ($3::bigint IS NULL OR s.version >= 0)",
        f"{CONFORMANCE} -k 'stale_after and postgres'",
    ),
    mutation(
        "PostgreSQL does not compare the version of several events",
        "stores/postgres/migrations/0001.sql",
        "(_version IS NULL OR s.version = _version)",
        "(_version IS NULL OR s.version >= 0)",
        f"{CONFORMANCE} -k '(stale_after or strict_condition) and postgres'",
    ),
    mutation(
        "PostgreSQL does not compare the mark",
        "stores/postgres/migrations/0001.sql",
        "IF _mark <> coalesce(_stands, 0) THEN",
        "IF _mark < 0 THEN",
        f"{CONFORMANCE} -k 'rebase_condition and postgres'",
    ),
    mutation(
        "a rebased compaction has no condition",
        "sessions/commit.py",
        "else Unchanged(lane=lane, mark=tip.mark)",
        "else None",
        f"{REDACTION} -k 'compaction_made_from_the_old_text and sqlite'",
        MARKS,
    ),
    mutation(
        "a strict compaction is rebased",
        "sessions/commit.py",
        "strict = call.strict or (lane is not None",
        "strict = (lane is not None",
        MARKS,
    ),
    mutation(
        "a pin does not move the mark",
        "sessions/marks.py",
        "when=Unchanged(lane=event.lane, mark=tip.mark), tip=tip)",
        "when=Unchanged(lane=event.lane, mark=tip.mark), tip=tip if event.kind != EventKind.PIN else None)",
        MARKS,
    ),
    mutation(
        "pins and undos have no condition",
        "sessions/marks.py",
        "when=Unchanged(lane=event.lane, mark=tip.mark), tip=tip)",
        "tip=tip)",
        f"{REDACTION} -k 'stale_pin or undo_takes'",
    ),
    mutation(
        "`after` of a pin or an undo is ignored",
        "sessions/marks.py",
        "    if after is not None and (tip.mark > after or _started_since(live, event.lane, after)):",
        "    if False:",
        f"{REDACTION} -k 'stale_pin or undo_takes'",
    ),
    mutation(
        "a restored copy has no condition",
        "sessions/restore.py",
        "when=unchanged, media=ready.media",
        "media=ready.media",
        f"{REDACTION} -k 'copy_made and sqlite'",
    ),
    mutation(
        "a fork has no condition",
        "sessions/service.py",
        "await self.store.create(record, mark=mark)",
        "await self.store.create(record)",
        f"{REDACTION} -k 'copy_made and sqlite'",
    ),
    # -- the lease ---------------------------------------------------------------------------------------
    mutation(
        "a compaction takes no lease",
        "sessions/lease.py",
        "        if lease is None:\n            return\n        self._tried = True",
        "        if lease is not None:\n            return\n        self._tried = True",
        "tests/jobs/test_job_runner.py -k two_workers",
    ),
    mutation(
        "SQLite gives a lease to every owner",
        "stores/sqlite/store.py",
        "WHERE leases.owner = excluded.owner OR leases.until <= ?5",
        "WHERE leases.owner = excluded.owner OR leases.until <= ?5 OR TRUE",
        f"{LEASES} -k 'one_owner and sqlite'",
    ),
    mutation(
        "JSONL gives a lease to every owner",
        "stores/jsonl/store.py",
        "taken = lease is None or lease.owner == owner\n        if lease is None or lease.owner == owner:",
        "taken = True\n        if True:",
        f"{LEASES} -k 'one_owner and jsonl'",
    ),
    mutation(
        "PostgreSQL gives a lease to every owner",
        "stores/postgres/leases.sql",
        "WHERE l.owner = excluded.owner OR l.until <= clock_timestamp()",
        "WHERE l.owner = excluded.owner OR l.until <= clock_timestamp() OR TRUE",
        f"{LEASES} -k 'one_owner and postgres'",
    ),
    mutation(
        "SQLite releases the lease of another owner",
        "stores/sqlite/store.py",
        "(SELECT key FROM sessions WHERE id = ?) AND name = ? AND owner = ?",
        "(SELECT key FROM sessions WHERE id = ?) AND name = ? AND owner <> ?||'-'",
        f"{LEASES} -k 'one_owner and sqlite'",
    ),
    mutation(
        "the lease of a dead process is kept",
        "io/processes.py",
        "machine == _machine() and _start_time(int(pid)) != started",
        "machine == _machine() and not _start_time(int(pid)) and False",
        f"{LEASES} -k has_ended",
    ),
    # -- redaction ---------------------------------------------------------------------------------------
    mutation(
        "SQLite leaves redacted words in the search index",
        "stores/sqlite/index.py",
        "    if not _begin_removal(connection) or row > index_watermark(connection):",
        "    if _begin_removal(connection):",
        f"{SQLITE} -k rewrite_removes",
    ),
    mutation(
        "PostgreSQL leaves redacted words in the search index",
        "stores/postgres/writes.sql",
        "WHERE x.session = e.session AND x.seq = e.seq\n    RETURNING",
        "WHERE x.session = e.session AND x.seq = -e.seq\n    RETURNING",
        "tests/stores/test_postgres_search.py -k rewrite_removes",
    ),
    mutation(
        "SQLite keeps its write-ahead log after a redaction",
        "stores/sqlite/connection.py",
        '"PRAGMA wal_checkpoint (TRUNCATE)"',
        '"PRAGMA wal_checkpoint (PASSIVE)"',
        f"{REDACTION} -k 'gone_from_notes and sqlite'",
    ),
    mutation(
        "SQLite does not overwrite what it deletes",
        "stores/sqlite/connection.py",
        '"PRAGMA secure_delete = ON"',
        '"PRAGMA secure_delete = OFF"',
        f"{REDACTION} -k sqlite",
        f"{SQLITE} -k rewrite_removes",
    ),
    mutation(
        "a redaction skips forks",
        "sessions/redaction.py",
        "            waiting += [fork for fork in await store.forks(each.id) if fork.parent_seq >= seq]\n",
        "",
        f"{REDACTION} -k 'reaches_forks and sqlite'",
    ),
    mutation(
        "a store rewrites although a fork was made meanwhile",
        "stores/append.py",
        "    if version != change.version or any(seq >= change.since and fork not in others for fork, seq in forks):",
        "    if version != change.version:",
        f"{CONFORMANCE} -k rewrite_changes",
    ),
    mutation(
        "a store rewrites a session that has moved",
        "stores/append.py",
        "    if version != change.version or any(seq >= change.since and fork not in others for fork, seq in forks):",
        "    if any(seq >= change.since and fork not in others for fork, seq in forks):",
        f"{CONFORMANCE} -k 'rewrite_changes and memory'",
    ),
    mutation(
        "a redaction does not move the marks",
        "stores/append.py",
        "    moved = {lane: msgspec.structs.replace(tip, mark=written.event.seq) for lane, tip in moved.items()}\n",
        "",
        f"{CONFORMANCE} -k moves_the_mark",
    ),
    mutation(
        "media of a redacted message stay",
        "stores/jsonl/writes.py",
        "            forgotten += [os.path.join(media, file_name(digest)) for digest in change.forget_media]\n",
        "            del media\n",
        f"{REDACTION} -k 'media and jsonl'",
    ),
    mutation(
        "an open view survives a redaction",
        "sessions/live.py",
        "            if event.kind == EventKind.REDACTION:\n                self._views.clear()",
        "            if event.kind == EventKind.REDACTION:\n                pass",
        f"{REDACTION} -k 'another_process and sqlite'",
    ),
    # -- forks and other writers -------------------------------------------------------------------------
    mutation(
        "a deletion does not copy shared events to forks",
        "stores/memory.py",
        "                self._copy_shared(fork, deleted)",
        "                pass",
        f"{CONFORMANCE} -k 'copies_shared and memory'",
    ),
    mutation(
        "a context does not see other writers",
        "sessions/live.py",
        "        if record.version != self.version and self._views:",
        "        if False:",
        f"{REDACTION} -k 'stale_pin and sqlite'",
        MARKS,
    ),
    mutation(
        "a view on another checkpoint than the log's is kept",
        "sessions/live.py",
        "            if tip is not None and view.checkpoint_id != tip.epoch:",
        "            if False:",
        MARKS,
    ),
)
