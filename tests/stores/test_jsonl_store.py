"""JSONL store: file format, torn lines, index, read-only folders, redaction (P6, H1, H5)."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.context.events import LaneTip
from holdfast.errors import CorruptLog, HoldfastError, StoreError, StoreReadOnly
from holdfast.io import files
from holdfast.stores import JSONLStore, Slice
from holdfast.stores.jsonl import folder
from holdfast.stores.jsonl.folder import file_name
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record, rewrite, rewriting

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def lines(place: Path, session_id: str = "s") -> list[Any]:
    return [json.loads(line) for line in (place / f"{session_id}.jsonl").read_text().splitlines()]


def write(path: Path, *texts: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))


def contents(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


class TestFormat:
    async def test_file_format_is_readable_json_lines(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", owner="ann")
            await store.append("s", [compaction("c2", summary="Done: all of it.")], tip=LaneTip(epoch="c2", start=1))
            await store.append("s", [message("x3", lane="sub")])
        head, first, second, third = lines(place)
        assert head == {"v": 1, "kind": "session", "id": "s", "created": "2026-01-01T00:00:00.000Z", "owner": "ann"}
        assert list(first) == ["v", "id", "seq", "time", "kind", "message", "digest"]
        assert first["message"] == {"role": "user", "content": "says e1"}
        assert second["kind"] == "compaction"
        assert (second["boundary"], second["summary"]) == ("e1", "Done: all of it.")
        assert second["tip"] == {"mark": 2, "epoch": "c2", "start": 1, "base": 0, "base_epoch": None}
        assert third["lane"] == "sub"

    async def test_append_leaves_earlier_bytes_unchanged(self, place: Path) -> None:
        """P6: a compaction adds one line."""
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
            before = (place / "s.jsonl").read_bytes()
            await store.append("s", [compaction("c3")], tip=LaneTip(epoch="c3", start=2))
            after = (place / "s.jsonl").read_bytes()
        assert after.startswith(before)
        assert after.count(b"\n") == before.count(b"\n") + 1

    async def test_handwritten_file_opens_as_session(self, place: Path) -> None:
        event = {"v": 1, "id": "e1", "seq": 1, "time": "t", "kind": "message", "message": {"content": "hi"}}
        head = {"v": 1, "kind": "session", "id": "s", "created": "t", "from": "the future"}
        write(place / "s.jsonl", *map(json.dumps, [head, event, {**event, "id": "e2", "seq": 2}]))
        write(place / "notes.jsonl", "not a session")
        async with JSONLStore(place) as store:
            assert [each.id for each in await store.sessions()] == ["s"]
            assert await ids(store) == ["e1", "e2"]
            assert await store.problems("s") == []
            assert (await store.append("s", [message("e3")])).version == 3
            with pytest.raises(CorruptLog):
                await store.session("notes")

    def test_file_name_is_safe_and_unique(self) -> None:
        names = ["", "a", "A", "a.b", "a/b", "..", "con", "CON", "x" * 300, "x" * 301, "é", "%41", "a\0"]
        encoded = [file_name(name) for name in names]
        assert len({name.lower() for name in encoded}) == len(names)
        assert all(len(name) <= 200 and not set(name) & set("./\\:\0") for name in encoded)
        assert file_name("018f-session_1") == "018f-session_1"

    async def test_delete_removes_all_files(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, session_id="../x")
            await store.append("../x", [message("e1")], media={"d": "data"})
            await store.delete("../x")
        assert {path.name for path in contents(place.parent)} <= {".folder.lock", ".deletion.lock", ".index.db"}


class TestTornEnds:
    @pytest.mark.parametrize("indexed", [True, False])
    async def test_torn_append_at_any_byte_is_skipped_whole(
        self, place: Path, caplog: pytest.LogCaptureFixture, indexed: bool
    ) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            before = (place / "s.jsonl").read_bytes()
            await store.append("s", [message("e2"), message("e3"), message("e4")], tip=LaneTip(epoch="e1"))
        whole = (place / "s.jsonl").read_bytes()
        for cut in range(len(before) + 1, len(whole), 7):
            await self.check_torn(place, whole[:cut], caplog, indexed)
        for cut in [at + 1 for at in range(len(before), len(whole) - 1) if whole[at : at + 1] == b"\n"]:
            await self.check_torn(place, whole[:cut], caplog, indexed)
        await self.check_torn(place, whole[:-1], caplog, indexed)

    async def check_torn(self, place: Path, data: bytes, caplog: pytest.LogCaptureFixture, indexed: bool) -> None:
        (place / "s.jsonl").write_bytes(data)
        if not indexed:
            (place / ".index.db").unlink(missing_ok=True)
        caplog.clear()
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1"]
            assert (await store.session("s")).lanes == {}
            assert [record.levelno for record in caplog.records] == [logging.WARNING]
            [problem] = await store.problems("s")
            assert "skipped" in problem
            assert (await store.append("s", [message("e2")])).version == 2
            assert await ids(store) == ["e1", "e2"]
        assert (place / "s.jsonl").read_bytes().startswith(data)
        async with JSONLStore(place) as store:
            assert (await store.append("s", [message("e2"), message("e5")])).version == 3
            assert await ids(store) == ["e1", "e2", "e5"]
            [problem] = await store.problems("s")

    async def test_line_after_torn_fragment_is_read(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2", "e3")
        head, one, two, three = (place / "s.jsonl").read_bytes().splitlines(keepends=True)
        (place / "s.jsonl").write_bytes(head + one + two[:40] + two + three)
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e2", "e3"]
            assert len(await store.problems("s")) == 1

    async def test_damaged_line_is_skipped_alone(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2", "e3")
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"id":"e2"', b'"id":\xff\x00"'))
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e3"]
            problems = await store.problems("s")
            assert any("cannot be read" in problem for problem in problems)
            assert any("seq 3 where 2 is expected" in problem for problem in problems)
            assert (await store.append("s", [message("e4")])).version == 4

    async def test_problems_edited_text_fails_digest(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b"says e1", b"adds e1"))
        async with JSONLStore(place) as store:
            [problem] = await store.problems("s")
            assert "'e1'" in problem
            assert "digest" in problem

    async def test_append_disk_full_restores_file(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def half(handle: int, data: bytes) -> None:
            os.write(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        async with JSONLStore(place) as store:
            await begin(store, "e1")
            before = (place / "s.jsonl").read_bytes()
            with monkeypatch.context() as patch:
                patch.setattr(files, "_write_all", half)
                with pytest.raises(StoreError, match="no room left"):
                    await store.append("s", [message("e2")])
            assert (place / "s.jsonl").read_bytes() == before
            assert (await store.append("s", [message("e2")])).version == 2
            assert await store.problems("s") == []


class TestIndex:
    async def many(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store)
            for start in range(0, 2000, 200):
                await store.append("s", [message(f"e{n}") for n in range(start, start + 200)])
            await store.append("s", [compaction("c")], tip=LaneTip(epoch="c", start=1990))

    async def test_index_reads_end_without_scanning(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """H5: opening and appending take constant time, whatever the length of the file."""
        await self.many(place)
        decoded: list[bytes] = []
        real = folder.decode_line
        monkeypatch.setattr(folder, "decode_line", lambda data: decoded.append(data) or real(data))
        monkeypatch.setattr(folder, "scan_log", lambda file, offset: pytest.fail("the whole file was read"))
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]
            assert (await store.session("s")).lanes[""].epoch == "c"
            assert (await store.append("s", [message("new")], after=2001)).version == 2002
            assert (await store.append("s", [message("e7")])).fresh is False
        assert len(decoded) <= 5

    async def test_index_missing_is_rebuilt(self, place: Path) -> None:
        await self.many(place)
        (place / ".index.db").unlink()
        async with JSONLStore(place) as store:
            assert (await store.session("s")).version == 2001
            assert (await store.session("s")).lanes == {"": LaneTip(2001, "c", 1990)}
            assert (await store.append("s", [message("e7")])).fresh is False

    @pytest.mark.parametrize("damage", [b"not a database", b"SQLite format 3\0" + b"x" * 5000, b""])
    async def test_index_broken_is_rebuilt(self, place: Path, damage: bytes) -> None:
        await self.many(place)
        (place / ".index.db").write_bytes(damage)
        async with JSONLStore(place) as store:
            assert (await store.append("s", [message("e2000")])).version == 2002
            assert len(await store.read("s", Slice())) == 2002
        async with JSONLStore(place) as store:
            assert (await store.session("s")).version == 2002

    async def test_index_of_edited_file_is_rebuilt(self, place: Path) -> None:
        await self.many(place)
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b"says e1990", b"says: e1990"))
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]
            assert len(await store.problems("s")) == 1

    async def test_index_outdated_catches_up(self, place: Path, tmp_path: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
        early = (place / ".index.db").read_bytes()
        async with JSONLStore(place) as store:
            await store.append("s", [message("e2")])
        (place / ".index.db").write_bytes(early)
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e2"]
            assert (await store.append("s", [message("e1")])).fresh is False

    async def test_index_wrong_offset_is_detected(self, place: Path) -> None:
        await self.many(place)
        with sqlite3.connect(place / ".index.db") as connection:
            connection.execute("UPDATE events SET offset = offset + 1 WHERE seq = 1999")
        connection.close()
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]

    async def test_index_broken_while_open_is_rebuilt(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            connection = store._folder.index._connection
            assert connection is not None
            connection.execute("DROP TABLE events")
            assert (await store.append("s", [message("e2")])).version == 2
            assert await ids(store) == ["e1", "e2"]


class TestRepeatedLines:
    async def test_repeated_lines_are_skipped_and_removed_by_the_next_rewrite(
        self, place: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Lines repeated while the store is open, before it is opened, and of a whole append."""
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
            await store.append("s", [message("e3"), message("e4")], media={"d": "data"})
            whole = (place / "s.jsonl").read_bytes()
            header, *events = whole.splitlines(keepends=True)
            (place / "s.jsonl").write_bytes(whole + events[0])
            assert (await store.append("s", [message("e5")])).version == 5
            assert await ids(store) == ["e1", "e2", "e3", "e4", "e5"]
        last = (place / "s.jsonl").read_bytes().splitlines(keepends=True)[-1]
        (place / "s.jsonl").write_bytes(header + b"".join(events[:2] * 2) + b"".join(events * 2) + last + events[1])
        (place / ".index.db").unlink()
        async with JSONLStore(place) as store:
            with caplog.at_level(logging.WARNING):
                assert await ids(store) == ["e1", "e2", "e3", "e4", "e5"]
            assert "a line repeats event 'e2'" in caplog.text
            problems = await store.problems("s")
            assert problems and all("repeats event" in problem for problem in problems)
            assert len(await store.search("says")) == 5
            assert (await store.append("s", [message("e6")])).version == 6
            assert await rewrite(store, "s", message("e1", "gone"))
            assert await store.problems("s") == []
            assert [line.get("id") for line in lines(place)][1:-1] == ["e1", "e2", "e3", "e4", "e5", "e6"]

    async def test_two_events_of_one_seq_are_one_clear_error(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
            await begin(store, "x1", session_id="other")
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1].replace(b"says", b"sang"))
        async with JSONLStore(place) as store:
            for call in (store.session, store.problems, lambda name: ids(store, name)):
                with pytest.raises(CorruptLog, match=r"two different events with seq 2, 'e2' and, at byte .* 'e2'"):
                    await call("s")
            assert await ids(store, "other") == ["x1"]


class TestReadOnly:
    async def test_read_only_folder_reads_and_refuses_writes(self, read_only_folder: Path) -> None:
        async with JSONLStore(read_only_folder / "sessions") as store:
            assert await ids(store) == ["e1", "e2"]
            assert len(await store.search("says")) == 2
            assert await store.problems("s") == []
            assert len(await store.sessions()) == 1
            with pytest.raises(StoreReadOnly):
                await store.append("s", [message("e3")])
            with pytest.raises(StoreReadOnly):
                await store.create(record("t"))
            with pytest.raises(StoreReadOnly):
                await store.delete("s")
        async with JSONLStore(read_only_folder / "new") as store:
            assert await store.sessions() == []
            with pytest.raises(StoreReadOnly):
                await store.create(record("t"))


class TestRedaction:
    async def test_rewrite_removes_text_from_all_files(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "hunter2")], media={"d": "hunter2"})
            path = place / "s.jsonl"
            path.write_bytes(path.read_bytes() + b'{"v":1,"id":"e3","text":"hunter2')
            await fork(store, "s", 2, "f")
            change = rewriting("s", 2, message("e2", "-"), forget_media=("d",))
            assert await store.rewrite([change, rewriting("f", 2)])
            assert await ids(store, "f", EVERYTHING) == ["e1", "e2", "r2"]
            assert await store.problems("f") == await store.problems("s") == []
        assert not [path for path, data in contents(place).items() if b"hunter2" in data]

    @pytest.mark.parametrize("died_at", [1, 2, 3, 4])
    async def test_rewrite_of_several_files_survives_a_crash_whole_or_not_at_all(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, died_at: int
    ) -> None:
        """The journal decides: from there on, the next process finishes."""
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            await fork(store, "s", 1, "f")
            await store.append("f", [message("f1")])
        real, moves = os.replace, []

        def replace(source: str, target: str) -> None:
            moves.append(target)
            if len(moves) == died_at:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        async with JSONLStore(place) as store:
            changes = [rewriting("s", 1, message("e1", "gone")), rewriting("f", 2, message("f1", "gone"))]
            with suppress(KeyboardInterrupt):
                await store.rewrite(changes)
        monkeypatch.undo()
        async with JSONLStore(place) as store:
            left = {hit.event.id for hit in await store.search("says")}
            assert left == ({"e1", "f1"} if died_at == 1 else set())
            assert await store.problems("s") == await store.problems("f") == []
            assert (await store.session("f")).version == (2 if died_at == 1 else 3)
        assert not [path for path in contents(place) if path.suffix in (".new", ".json")]


GARBAGE = (
    *(b"null", b"[]", b"{}", b"7", b'"x"', b"\xff\xfe", b"{" * 5_000, b'{"v":1}', b'{"v":1,"id":7}', b"\0" * 50),
    *(
        b'{"v":1,"id":"x","seq":%s,"kind":"message"}' % number
        for number in (b"-5", b'"y"', b"0", b"9" * 20, b"9" * 400)
    ),
    b'{"v":1,"id":"q","seq":4,"kind":"message","tip":7}',
    b'{"v":1,"id":"q","seq":4,"kind":"message","tip":{"mark":99999999999999999999}}',
    b'{"v":1,"kind":"session","id":"s","created":"t","version":99999999999999999999,"parent_seq":-1}',
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda line: line[:40])
@pytest.mark.parametrize("at", [0, 2])
async def test_garbage_in_a_file_gives_clear_errors_only(place: Path, garbage: bytes, at: int) -> None:
    """In place of the header, or of an event: what can be read is read, the rest is one sentence."""
    async with JSONLStore(place) as store:
        await begin(store, "e1", "e2", "e3")
        await begin(store, "x1", session_id="other")
    lines = (place / "s.jsonl").read_bytes().splitlines()
    lines[at] = garbage
    (place / "s.jsonl").write_bytes(b"\n".join([*lines, b""]))
    async with JSONLStore(place) as store:
        for call in (
            lambda: store.session("s"),
            lambda: store.read("s", EVERYTHING),
            lambda: store.problems("s"),
            lambda: store.append("s", [message("e4")]),
            lambda: store.search("says"),
            lambda: store.forks("s"),
            lambda: rewrite(store, "s", message("e1", "-")),
            lambda: store.sessions(),
            lambda: store.delete("s"),
        ):
            with suppress(HoldfastError):
                await call()
        assert await ids(store, "other") == ["x1"]
