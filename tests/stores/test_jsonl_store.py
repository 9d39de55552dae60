"""JSONL files: readable, append-only, and safe from crashes, other processes and a wrong index (P6, H1, H5)."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CorruptLog, StoreError, StoreReadOnly
from holdfast.events import LaneTip
from holdfast.stores import JSONLStore, Slice
from holdfast.stores.jsonl import files, folder
from holdfast.stores.jsonl.names import file_name
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record

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
    async def test_a_person_can_read_it(self, place: Path) -> None:
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

    async def test_nothing_before_an_append_is_rewritten(self, place: Path) -> None:
        """P6: a compaction is one line more."""
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
            before = (place / "s.jsonl").read_bytes()
            await store.append("s", [compaction("c3")], tip=LaneTip(epoch="c3", start=2))
            after = (place / "s.jsonl").read_bytes()
        assert after.startswith(before)
        assert after.count(b"\n") == before.count(b"\n") + 1

    async def test_a_file_from_elsewhere_is_a_session(self, place: Path) -> None:
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

    def test_file_names_are_plain_and_never_shared(self) -> None:
        names = ["", "a", "A", "a.b", "a/b", "..", "con", "CON", "x" * 300, "x" * 301, "é", "%41", "a\0"]
        encoded = [file_name(name) for name in names]
        assert len({name.lower() for name in encoded}) == len(names)
        assert all(len(name) <= 200 and not set(name) & set("./\\:\0") for name in encoded)
        assert file_name("018f-session_1") == "018f-session_1"

    async def test_deleting_leaves_no_file(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, session_id="../x")
            await store.append("../x", [message("e1")], media={"d": "data"})
            await store.delete("../x")
        assert {path.name for path in contents(place.parent)} <= {".folder.lock", ".index.db"}


class TestTornEnds:
    @pytest.mark.parametrize("indexed", [True, False])
    async def test_a_crash_at_any_byte_loses_only_what_it_cut(
        self, place: Path, caplog: pytest.LogCaptureFixture, indexed: bool
    ) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            before = (place / "s.jsonl").read_bytes()
            await store.append("s", [message("e2"), message("e3"), message("e4")], tip=LaneTip(epoch="e1"))
        whole = (place / "s.jsonl").read_bytes()
        for cut in range(len(before) + 1, len(whole), 7):
            await self.survives(place, whole[:cut], caplog, indexed)
        for cut in [at + 1 for at in range(len(before), len(whole) - 1) if whole[at : at + 1] == b"\n"]:
            await self.survives(place, whole[:cut], caplog, indexed)
        await self.survives(place, whole[:-1], caplog, indexed)

    async def survives(self, place: Path, data: bytes, caplog: pytest.LogCaptureFixture, indexed: bool) -> None:
        (place / "s.jsonl").write_bytes(data)
        if not indexed:
            (place / ".index.db").unlink(missing_ok=True)
        caplog.clear()
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1"]
            assert (await store.session("s")).lanes == {}
            assert [record.levelno for record in caplog.records] == [logging.WARNING]
            [problem] = await store.problems("s")
            assert "passed over" in problem
            assert (await store.append("s", [message("e2")])).version == 2
            assert await ids(store) == ["e1", "e2"]
        assert (place / "s.jsonl").read_bytes().startswith(data)
        async with JSONLStore(place) as store:
            assert (await store.append("s", [message("e2"), message("e5")])).version == 3
            assert await ids(store) == ["e1", "e2", "e5"]
            [problem] = await store.problems("s")

    async def test_a_line_glued_to_a_fragment_is_still_read(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2", "e3")
        head, one, two, three = (place / "s.jsonl").read_bytes().splitlines(keepends=True)
        (place / "s.jsonl").write_bytes(head + one + two[:40] + two + three)
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e2", "e3"]
            assert len(await store.problems("s")) == 1

    async def test_a_damaged_line_takes_no_other_with_it(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2", "e3")
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"id":"e2"', b'"id":\xff\x00"'))
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e3"]
            problems = await store.problems("s")
            assert any("cannot be read" in problem for problem in problems)
            assert any("seq 3 where 2 is due" in problem for problem in problems)
            assert (await store.append("s", [message("e4")])).version == 4

    async def test_a_changed_word_does_not_match_its_digest(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1", "e2")
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b"says e1", b"said e1"))
        async with JSONLStore(place) as store:
            [problem] = await store.problems("s")
            assert "'e1'" in problem
            assert "digest" in problem

    async def test_a_full_disk_leaves_the_file_as_it_was(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def half(handle: int, data: bytes) -> None:
            os.write(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        async with JSONLStore(place) as store:
            await begin(store, "e1")
            before = (place / "s.jsonl").read_bytes()
            with monkeypatch.context() as patch:
                patch.setattr(files, "_write", half)
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

    async def test_the_end_is_read_without_the_rest(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """H5: opening and appending cost the same however long the file is."""
        await self.many(place)
        decoded: list[bytes] = []
        real = folder.decode_line
        monkeypatch.setattr(folder, "decode_line", lambda data: decoded.append(data) or real(data))
        monkeypatch.setattr(folder, "scan", lambda file, offset: pytest.fail("the whole file was read"))
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]
            assert (await store.session("s")).lanes[""].epoch == "c"
            assert (await store.append("s", [message("new")], after=2001)).version == 2002
            assert (await store.append("s", [message("e7")])).fresh is False
        assert len(decoded) <= 5

    async def test_it_is_made_again_when_missing(self, place: Path) -> None:
        await self.many(place)
        (place / ".index.db").unlink()
        async with JSONLStore(place) as store:
            assert (await store.session("s")).version == 2001
            assert (await store.session("s")).lanes == {"": LaneTip(2001, "c", 1990)}
            assert (await store.append("s", [message("e7")])).fresh is False

    @pytest.mark.parametrize("damage", [b"not a database", b"SQLite format 3\0" + b"x" * 5000, b""])
    async def test_it_is_made_again_when_broken(self, place: Path, damage: bytes) -> None:
        await self.many(place)
        (place / ".index.db").write_bytes(damage)
        async with JSONLStore(place) as store:
            assert (await store.append("s", [message("e2000")])).version == 2002
            assert len(await store.read("s", Slice())) == 2002
        async with JSONLStore(place) as store:
            assert (await store.session("s")).version == 2002

    async def test_it_is_made_again_when_the_file_was_edited(self, place: Path) -> None:
        await self.many(place)
        path = place / "s.jsonl"
        path.write_bytes(path.read_bytes().replace(b"says e1990", b"says: e1990"))
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]
            assert len(await store.problems("s")) == 1

    async def test_it_catches_up_with_what_was_written_without_it(self, place: Path, tmp_path: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
        early = (place / ".index.db").read_bytes()
        async with JSONLStore(place) as store:
            await store.append("s", [message("e2")])
        (place / ".index.db").write_bytes(early)
        async with JSONLStore(place) as store:
            assert await ids(store) == ["e1", "e2"]
            assert (await store.append("s", [message("e1")])).fresh is False

    async def test_a_lie_in_it_is_found_out(self, place: Path) -> None:
        await self.many(place)
        with sqlite3.connect(place / ".index.db") as connection:
            connection.execute("UPDATE events SET offset = offset + 1 WHERE seq = 1999")
        connection.close()
        async with JSONLStore(place) as store:
            assert await ids(store, "s", Slice(after=1998)) == ["e1998", "e1999", "c"]

    async def test_it_breaks_in_the_middle_of_work(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            connection = store._folder.index._connection
            assert connection is not None
            connection.execute("DROP TABLE events")
            assert (await store.append("s", [message("e2")])).version == 2
            assert await ids(store) == ["e1", "e2"]


class TestReadOnly:
    async def test_it_can_be_read_and_not_written(self, locked_away: Path) -> None:
        async with JSONLStore(locked_away / "sessions") as store:
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
        async with JSONLStore(locked_away / "new") as store:
            assert await store.sessions() == []
            with pytest.raises(StoreReadOnly):
                await store.create(record("t"))


class TestRedaction:
    async def test_no_file_holds_the_text_any_more(self, place: Path) -> None:
        async with JSONLStore(place) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "hunter2")], media={"d": "hunter2"})
            path = place / "s.jsonl"
            path.write_bytes(path.read_bytes() + b'{"v":1,"id":"e3","text":"hunter2')
            await fork(store, "s", 2, "f")
            await store.rewrite("f", [message("e2", "-")], ["d"])
            assert await ids(store, "f", EVERYTHING) == ["e1", "e2"]
            assert await store.problems("f") == await store.problems("s") == []
        assert not [path for path, data in contents(place).items() if b"hunter2" in data]
