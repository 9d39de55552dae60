"""Conformance suite of the store protocols, run on every store (S3, P6, L9, H1)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.context.events import Event, LaneTip
from holdfast.errors import (
    Conflict,
    DuplicateEvent,
    HoldfastError,
    InvalidInput,
    StaleVersion,
    StoreClosed,
    UnknownEvent,
    UnknownSession,
)
from holdfast.stores import Log, PostgresStore, Search, Slice, Unchanged
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record, rewrite, rewriting, seqs

pytestmark = pytest.mark.anyio


async def test_store_implements_log_and_search(store: Any) -> None:
    assert isinstance(store, Log)
    assert isinstance(store, Search)


class TestSessions:
    async def test_create_record_round_trips(self, store: Any) -> None:
        original = record(
            "s",
            owner="ann",
            system=[{"type": "text", "text": "Be brief."}],
            tools=[{"name": "ls"}],
            format="anthropic",
            model="m",
            metadata={"cwd": "/", "n": 1},
        )
        await store.create(original)
        assert await store.session("s") == original

    async def test_create_existing_id_raises(self, store: Any) -> None:
        await begin(store, "e1")
        with pytest.raises(InvalidInput, match="exists already"):
            await store.create(record("s"))
        assert await ids(store) == ["e1"]

    async def test_sessions_are_listed_newest_first(self, store: Any) -> None:
        for day, owner in ((2, "ann"), (1, "bob"), (3, "ann")):
            await store.create(record(f"s{day}", created=f"2026-01-0{day}T00:00:00.000Z", owner=owner))
        assert [each.id for each in await store.sessions()] == ["s3", "s2", "s1"]
        assert [each.id for each in await store.sessions(owner="ann")] == ["s3", "s2"]
        assert [each.id for each in await store.sessions(limit=1)] == ["s3"]
        assert await store.sessions(owner="nobody") == []
        assert await store.sessions(limit=0) == []

    @pytest.mark.parametrize("operation", ["session", "read", "append", "media", "forks", "delete", "problems"])
    async def test_unknown_session_raises_everywhere(self, store: Any, operation: str) -> None:
        arguments = {"read": [EVERYTHING], "append": [[message("e1")]], "media": [["d"]]}
        with pytest.raises(UnknownSession):
            await getattr(store, operation)("nowhere", *arguments.get(operation, []))
        with pytest.raises(UnknownSession):
            await store.rewrite([rewriting("nowhere", 0)])
        with pytest.raises(UnknownSession):
            await store.search("word", session_id="nowhere")
        assert await store.sessions() == []

    @pytest.mark.parametrize(
        "session_id",
        ["../../x", "x" * 300, "é" * 300, "a\0b", "A", "con", "/etc/passwd", ".", "..", " ", "%2e", "s'; --", "日本"],
    )
    async def test_session_id_may_be_any_text(self, store: Any, session_id: str) -> None:
        await begin(store, "e1", session_id=session_id)
        await begin(store, "other", session_id="a")
        assert (await store.session(session_id)).version == 1
        assert await ids(store, session_id) == ["e1"]
        assert {each.id for each in await store.sessions()} == {session_id, "a"}
        await store.delete(session_id)
        assert [each.id for each in await store.sessions()] == ["a"]

    async def test_long_session_ids_with_same_prefix_are_distinct(self, store: Any) -> None:
        await begin(store, "e1", session_id="x" * 300 + "1")
        await begin(store, "e2", session_id="x" * 300 + "2")
        assert await ids(store, "x" * 300 + "1") == ["e1"]

    @pytest.mark.parametrize("session_id", ["", "\ud800"])
    async def test_session_id_invalid_raises(self, store: Any, session_id: str) -> None:
        with pytest.raises(InvalidInput):
            await store.create(record(session_id))
        with pytest.raises(HoldfastError):
            await store.session(session_id)


class TestAppend:
    async def test_append_increments_seq_and_version(self, store: Any) -> None:
        await begin(store)
        first = await store.append("s", [message("e1")])
        assert (seqs(first), first.version, first.fresh, first.conflict) == ([1], 1, True, False)
        batch = await store.append("s", [message("e2"), message("e3")])
        assert (seqs(batch), batch.version) == ([2, 3], 3)
        assert (await store.session("s")).version == 3
        assert [event.seq for event in await store.read("s", Slice())] == [1, 2, 3]

    async def test_append_event_round_trips(self, store: Any) -> None:
        """H1: unknown kinds, unknown fields and any text are preserved."""
        body = {
            "seq": "a field that the envelope has too",
            "body": {"id": 1},
            "z": 1,
            "a": [None, True, 1.5, -(2**40), {"deep": ["x"]}],
            "text": '\0 \u2028 é 日本語 👩‍👩‍👧 "quoted" \\ \r\n</script>',
        }
        event = Event("e 1/é", "from-the-future", "2027-01-01T00:00:00.000Z", body, v=99)
        await begin(store)
        [stored] = (await store.append("s", [event])).events
        [found] = await store.read("s", Slice())
        assert found == stored == msgspec.structs.replace(event, seq=1)
        assert list(found.body) == list(body)
        assert await store.problems("s") == []

    async def test_append_empty_writes_nothing(self, store: Any) -> None:
        await begin(store, "e1")
        done = await store.append("s", [])
        assert (done.events, done.version, done.fresh) == ((), 1, False)

    async def test_append_large_batch(self, store: Any) -> None:
        await begin(store)
        done = await store.append("s", [message(f"e{n}") for n in range(200)])
        assert done.version == 200
        assert await ids(store) == [f"e{n}" for n in range(200)]

    @pytest.mark.parametrize(
        "event", [message(""), message("a\0b"), message("e", text="\ud800"), Event("e", "k", "t", {"x": object()})]
    )
    async def test_append_invalid_event_refuses_whole_batch(self, store: Any, event: Event) -> None:
        await begin(store, "e1")
        with pytest.raises(InvalidInput):
            await store.append("s", [message("e2"), event])
        assert await ids(store) == ["e1"]

    async def test_append_copies_callers_objects(self, store: Any) -> None:
        await begin(store)
        event = message("e1", "before")
        await store.append("s", [event])
        event.body["message"]["content"] = "after"
        assert (await store.read("s", Slice()))[0].body["message"]["content"] == "before"


class TestIdempotence:
    async def test_append_retry_writes_nothing(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        again = await store.append("s", [message("e1")])
        assert (seqs(again), again.version, again.fresh) == ([1], 2, False)
        assert await ids(store) == ["e1", "e2"]

    async def test_append_known_id_is_looked_up_before_conditions(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        again = await store.append("s", [message("e1")], after=0, when=Unchanged(version=0))
        assert (again.fresh, again.conflict) == (False, False)

    async def test_append_retried_batch_returns_same_events(self, store: Any) -> None:
        await begin(store)
        batch = [message("e1"), message("e2")]
        first, again = await store.append("s", batch), await store.append("s", batch)
        assert first.events == again.events
        assert (first.fresh, again.fresh) == (True, False)

    async def test_append_known_id_with_other_content_raises(self, store: Any) -> None:
        await begin(store, "e1")
        for other in (message("e1", "changed"), message("e1", lane="sub"), Event("e1", "pin", "t", {})):
            with pytest.raises(DuplicateEvent):
                await store.append("s", [message("e2"), other])
        assert await ids(store) == ["e1"]

    async def test_append_partly_known_batch_writes_the_rest(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        done = await store.append("s", [message("e2"), message("e3")])
        assert (seqs(done), done.version, done.fresh) == ([2, 3], 3, True)

    async def test_append_duplicate_id_in_batch_is_one_event(self, store: Any) -> None:
        await begin(store)
        done = await store.append("s", [message("e1"), message("e1")])
        assert seqs(done) == [1, 1]
        with pytest.raises(DuplicateEvent):
            await store.append("s", [message("e2"), message("e2", "other")])
        assert await ids(store) == ["e1"]

    async def test_event_ids_are_per_session(self, store: Any) -> None:
        await begin(store, "e1", session_id="a")
        await begin(store, "e1", session_id="b")
        assert await ids(store, "b") == ["e1"]


class TestCompareAndSet:
    """S3: a writer with an older version loses, and no event is lost."""

    async def test_append_stale_after_raises(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [message("e2")], after=1)
        with pytest.raises(StaleVersion) as caught:
            await store.append("s", [message("e3")], after=1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert await ids(store) == ["e1", "e2"]

    async def test_append_strict_condition_conflicts_with_any_append(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        lost = await store.append("s", [compaction("c1")], when=Unchanged(version=1), tip=LaneTip(epoch="c1"))
        assert (lost.conflict, lost.version, lost.events) == (True, 2, ())
        assert (await store.session("s")).lanes == {}
        won = await store.append("s", [compaction("c1")], when=Unchanged(version=2), tip=LaneTip(epoch="c1"))
        assert (won.conflict, won.version) == (False, 3)
        assert await ids(store) == ["e1", "e2", "c1"]

    async def test_append_rebase_condition_conflicts_with_moved_mark_only(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [message("e2")])
        won = await store.append("s", [compaction("c1")], when=Unchanged(mark=0), tip=LaneTip(epoch="c1"))
        lost = await store.append("s", [compaction("c2")], when=Unchanged(mark=0), tip=LaneTip(epoch="c2"))
        assert (won.conflict, lost.conflict) == (False, True)
        assert (await store.session("s")).lanes[""].epoch == "c1"

    async def test_append_rebase_condition_checks_its_own_lane(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"))
        free = await store.append("s", [message("x", lane="sub")], when=Unchanged(lane="sub", mark=0), tip=LaneTip())
        lost = await store.append("s", [message("y", lane="sub")], when=Unchanged(lane="sub", mark=0), tip=LaneTip())
        assert (free.conflict, lost.conflict) == (False, True)


class TestTips:
    async def test_tip_is_written_with_its_event(self, store: Any) -> None:
        """L9: event and lane tip are written in one transaction."""
        await begin(store, "e1", "e2")
        await store.append("s", [compaction("c1")], tip=LaneTip(mark=77, epoch="c1", start=1))
        assert (await store.session("s")).lanes == {"": LaneTip(mark=3, epoch="c1", start=1)}
        assert await store.problems("s") == []

    async def test_events_record_epoch_of_their_lane(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1))
        await store.append("s", [message("e2"), message("e3", lane="sub")])
        await store.append("s", [compaction("c2")], tip=LaneTip(epoch="c2", start=3))
        epochs = {event.id: event.epoch for event in await store.read("s", EVERYTHING)}
        assert epochs == {"e1": None, "c1": None, "e2": "c1", "e3": None, "c2": "c1"}

    async def test_lane_base_is_root_at_first_append(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1))
        await store.append("s", [message("x1", lane="sub"), message("x2", lane="sub")])
        await store.append("s", [message("e2")])
        await store.append("s", [message("x3", lane="sub")])
        assert (await store.session("s")).lanes["sub"] == LaneTip(base=2, base_epoch="c1")
        await store.append("s", [compaction("c2", lane="sub")], tip=LaneTip(epoch="c2", start=6))
        assert (await store.session("s")).lanes["sub"] == LaneTip(7, "c2", 6, base=2, base_epoch="c1")
        assert (await store.session("s")).lanes[""].epoch == "c1"
        assert await store.problems("s") == []

    async def test_tip_with_events_of_several_lanes_raises(self, store: Any) -> None:
        await begin(store)
        for events in ([], [message("e1"), message("e2", lane="sub")]):
            with pytest.raises(InvalidInput):
                await store.append("s", events, tip=LaneTip())

    async def test_tip_is_unchanged_by_retry(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"))
        await store.append("s", [compaction("c2")], tip=LaneTip(epoch="c2"))
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"))
        assert (await store.session("s")).lanes[""].epoch == "c2"


class TestRead:
    @pytest.mark.parametrize(
        ("which", "expected"),
        [
            (Slice(), "e1 e3 c5 e6"),
            (Slice(lane=""), "e1 e3 c5 e6"),
            (Slice(any_lane=True), "e1 x2 e3 x4 c5 e6"),
            (Slice(lane="sub"), "x2 x4"),
            (Slice(lane="nowhere"), ""),
            (Slice(after=3), "c5 e6"),
            (Slice(until=3), "e1 e3"),
            (Slice(after=1, until=5, any_lane=True), "x2 e3 x4 c5"),
            (Slice(after=9), ""),
            (Slice(after=2**70), ""),
            (Slice(until=2**70), "e1 e3 c5 e6"),
            (Slice(kinds=("compaction",)), "c5"),
            (Slice(kinds=("message", "pin"), any_lane=True), "e1 x2 e3 x4 e6"),
            (Slice(ids=("e6", "e1", "none")), "e1 e6"),
            (Slice(ids=("x2", "e1"), any_lane=True), "e1 x2"),
            (Slice(ids=("x2", "e1")), "e1"),
            (Slice(ids=("e1", "e3", "e6"), limit=2, newest=True), "e3 e6"),
            (Slice(limit=2), "e1 e3"),
            (Slice(limit=2, newest=True), "c5 e6"),
            (Slice(limit=3, newest=True, any_lane=True), "x4 c5 e6"),
            (Slice(limit=0), ""),
            (Slice(limit=-1), ""),
            (Slice(limit=99, newest=True), "e1 e3 c5 e6"),
            (Slice(newest=True), "e1 e3 c5 e6"),
            (Slice(kinds=("message",), until=5, limit=1, newest=True), "e3"),
        ],
        ids=repr,
    )
    async def test_read_slice_selects_events(self, store: Any, which: Slice, expected: str) -> None:
        await begin(store, "e1")
        await store.append("s", [message("x2", lane="sub")])
        await store.append("s", [message("e3")])
        await store.append("s", [message("x4", lane="sub")])
        await store.append("s", [compaction("c5")], tip=LaneTip(epoch="c5"))
        await store.append("s", [message("e6")])
        assert " ".join(await ids(store, "s", which)) == expected


class TestForks:
    async def test_fork_reads_parent_events(self, store: Any) -> None:
        await begin(store, "e1", "e2", "e3")
        await fork(store, "s", 2, "f")
        assert seqs(await store.append("f", [message("f3")])) == [3]
        await store.append("s", [message("e4")])
        assert await ids(store, "f") == ["e1", "e2", "f3"]
        assert await ids(store, "s") == ["e1", "e2", "e3", "e4"]
        assert await ids(store, "f", Slice(limit=2, newest=True)) == ["e2", "f3"]
        assert await ids(store, "f", Slice(after=1, limit=1)) == ["e2"]
        assert await ids(store, "f", Slice(ids=("e1", "e3", "f3"))) == ["e1", "f3"]
        assert await store.problems("f") == []

    async def test_fork_inherits_tips(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1))
        await store.create(record("f", parent="s", parent_seq=2, version=2, lanes={"": LaneTip(2, "c1", 1)}))
        assert (await store.append("f", [message("f1")])).events[0].epoch == "c1"
        assert (await store.session("f")).lanes == {"": LaneTip(2, "c1", 1)}
        assert await store.problems("f") == []

    async def test_fork_knows_inherited_ids_only(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        await fork(store, "s", 1, "f")
        assert (await store.append("f", [message("e1")])).fresh is False
        with pytest.raises(DuplicateEvent):
            await store.append("f", [message("e1", "other")])
        assert (await store.append("f", [message("e2", "other")])).version == 2

    async def test_fork_of_fork_reads_all_ancestors(self, store: Any) -> None:
        await begin(store, "e1", "e2", "e3")
        await fork(store, "s", 3, "f")
        await store.append("f", [message("f4"), message("f5")])
        await fork(store, "f", 4, "g")
        await fork(store, "f", 2, "h")
        await store.append("g", [message("g5")])
        assert await ids(store, "g") == ["e1", "e2", "e3", "f4", "g5"]
        assert await ids(store, "g", Slice(after=3)) == ["f4", "g5"]
        assert await ids(store, "g", Slice(limit=3, newest=True)) == ["e3", "f4", "g5"]
        assert await ids(store, "h") == ["e1", "e2"]

    @pytest.mark.parametrize("gone", ["s f", "f s", "s", "f"])
    async def test_delete_parent_copies_shared_events_to_forks(self, store: Any, gone: str) -> None:
        await begin(store, "e1")
        await store.append("s", [message("e2"), message("x3", lane="sub"), message("e4")])
        await store.append("s", [message("secret")])
        await fork(store, "s", 3, "f")
        await store.append("f", [message("f4"), message("f5")])
        await fork(store, "f", 4, "g")
        await fork(store, "f", 2, "h")
        before = {name: await store.read(name, EVERYTHING) for name in "gh"}
        for name in gone.split():
            await store.delete(name)
            with pytest.raises(UnknownSession):
                await store.session(name)
        for name in "gh":
            assert await store.read(name, EVERYTHING) == before[name]
            assert await store.problems(name) == []
        assert (await store.append("h", [message("h3")])).version == 3
        assert await ids(store, "g", Slice(lane="sub")) == ["x3"]
        if gone == "s f":
            assert await store.search("secret") == []

    async def test_fork_invalid_parent_raises(self, store: Any) -> None:
        await begin(store, "e1")
        with pytest.raises(UnknownSession):
            await fork(store, "nowhere", 0, "f")
        for fields in ({"parent_seq": 2, "version": 2}, {"parent_seq": 1}, {"parent_seq": -1, "version": -1}):
            with pytest.raises(InvalidInput):
                await store.create(record("f", parent="s", **fields))
        with pytest.raises(InvalidInput):
            await store.create(record("f", version=1))

    async def test_fork_of_a_parent_whose_mark_has_moved_conflicts(self, store: Any) -> None:
        await begin(store, "e1")
        made = record("f", parent="s", parent_seq=1, version=1)
        await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"))
        with pytest.raises(Conflict):
            await store.create(made, mark=0)
        with pytest.raises(UnknownSession):
            await store.session("f")
        await store.append("s", [message("e2")])
        await store.create(made, mark=2)
        assert await ids(store, "f") == ["e1"]


class TestMedia:
    async def test_media_is_stored_and_read_by_digest(self, store: Any) -> None:
        await begin(store)
        await store.append("s", [message("e1")], media={"d1": "aGVsbG8=", "../d2": "line\r\nline é"})
        await store.append("s", [message("e2")], media={"d1": "aGVsbG8="})
        found = await store.media("s", ["d1", "../d2", "none"])
        assert found == {"d1": "aGVsbG8=", "../d2": "line\r\nline é"}

    async def test_media_of_conflicting_append_is_not_stored(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [message("e2")], when=Unchanged(version=0), media={"d": "x"})
        assert await store.media("s", ["d"]) == {}

    async def test_media_is_visible_to_forks_and_kept_on_delete(self, store: Any) -> None:
        await begin(store)
        await store.append("s", [message("e1")], media={"early": "1"})
        await store.append("s", [message("e2")], media={"late": "2"})
        await fork(store, "s", 1, "f")
        assert await store.media("f", ["early"]) == {"early": "1"}
        await store.delete("s")
        assert await store.media("f", ["early", "late"]) == {"early": "1"}


class TestRewrite:
    async def test_rewrite_replaces_body_and_keeps_digest(self, store: Any) -> None:
        await begin(store, "e1")
        await store.append("s", [message("e2", "my password is hunter2")], media={"d": "x", "k": "y"})
        [before] = await store.read("s", Slice(ids=("e2",)))
        assert await rewrite(store, "s", msgspec.structs.replace(before, body={"redacted": True}), forget=("d",))
        [after] = await store.read("s", Slice(ids=("e2",)))
        assert after == msgspec.structs.replace(before, body={"redacted": True})
        assert await store.search("hunter2") == []
        assert await store.media("s", ["d", "k"]) == {"k": "y"}
        assert await store.problems("s") == []
        again = await store.append("s", [message("e2", "my password is hunter2")])
        assert (again.fresh, again.events[0].body) == (False, {"redacted": True})
        assert (await store.append("s", [message("e3")])).version == 4
        assert await ids(store) == ["e1", "e2", "r2", "e3"]

    async def test_rewrite_unknown_event_changes_nothing(self, store: Any) -> None:
        await begin(store, "e1")
        with pytest.raises(UnknownEvent):
            await rewrite(store, "s", message("e1", "gone"), message("none"))
        assert len(await store.search("says")) == 1
        assert (await store.session("s")).version == 1

    async def test_rewrite_changes_several_sessions_or_none(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        await fork(store, "s", 1, "f")
        await store.append("f", [message("f1")])
        parent, child = rewriting("s", 2, message("e1", "gone")), rewriting("f", 2, message("f1", "gone"))
        assert not await store.rewrite([parent]), "its fork shares e1"
        assert not await store.rewrite([parent, msgspec.structs.replace(child, version=1)])
        assert len(await store.search("says")) == 3
        assert (await store.session("s")).version == (await store.session("f")).version == 2
        assert await store.rewrite([parent, child])
        assert [hit.event.id for hit in await store.search("says")] == ["e2"]
        assert (await store.read("f", Slice()))[0].body["message"]["content"] == "gone"
        assert await store.problems("s") == await store.problems("f") == []

    async def test_rewrite_needs_no_fork_that_shares_nothing(self, store: Any) -> None:
        await begin(store, "e1", "e2")
        await fork(store, "s", 1, "f")
        assert [each.id for each in await store.forks("s")] == ["f"]
        assert await store.rewrite([rewriting("s", 2, message("e2", "gone"), since=2)])
        assert await store.forks("f") == []

    async def test_rewrite_moves_the_mark_of_every_lane(self, store: Any) -> None:
        """A compaction that was made before is refused in every lane."""
        await begin(store, "e1")
        await store.append("s", [message("e2", lane="sub")])
        lanes = (await store.session("s")).lanes
        assert await rewrite(store, "s", message("e1", "gone"))
        for lane in (None, "sub"):
            before = lanes.get(lane or "", LaneTip())
            done = await store.append(
                "s", [compaction(f"c{lane}", lane)], when=Unchanged(lane=lane, mark=before.mark), tip=before
            )
            assert done.conflict
        after = (await store.session("s")).lanes
        assert (after[""].mark, after["sub"].mark, after["sub"].base) == (3, 3, 1)

    async def test_rewrite_replaces_system_prompt_and_metadata(self, store: Any) -> None:
        await begin(store, "e1", system="The key is hunter2.", metadata={"k": "hunter2"}, owner="ann")
        [change] = [msgspec.structs.replace(rewriting("s", 1), record=record("s", system="gone", metadata={"k": "-"}))]
        assert await store.rewrite([change])
        found = await store.session("s")
        assert (found.system, found.metadata, found.owner, found.version) == ("gone", {"k": "-"}, "ann", 2)
        assert await store.rewrite([])


class TestDelete:
    async def test_delete_removes_everything(self, store: Any) -> None:
        await begin(store, "e1", session_id="a")
        await begin(store, "e1", session_id="b")
        await store.append("a", [message("e2", "unique")], media={"d": "x"})
        await store.delete("a")
        assert await store.search("unique") == []
        assert [hit.session_id for hit in await store.search("says")] == ["b"]
        await begin(store, session_id="a")
        assert await ids(store, "a") == []
        assert await store.media("a", ["d"]) == {}
        await store.append("a", [message("e9", "afresh")])
        assert len(await store.search("afresh")) == 1


class TestSearch:
    TEXTS: ClassVar = (
        "The deploy failed on Zürich staging",
        "das Straßenfest",
        "我们决定使用数据库分片方案",
        "東京タワー",
        "all green 👍🏽 ship it",
        'he said "drop table" -- and left',
        "100% of a_b is c*d",
        "NEAR AND OR NOT (x:y) ^z",
        "the word at the very end is ok",
        "back\\slash and {curly}",
    )

    QUERIES: ClassVar = {
        "deploy": [0],
        "DEPLOY failed": [0],
        "ploy stag": [0],
        "zürich": [0],
        "ZÜRICH": [0],
        "STRASSENFEST": [1],
        "数据库分片": [2],
        "数据": [2],
        "片": [2],
        "東京": [3],
        "ワー": [3],
        "👍": [4],
        "👍🏽 ship": [4],
        '"drop table"': [5],
        "--": [5],
        "100%": [6],
        "%": [6],
        "a_b": [6],
        "d_p": [],
        "c*d": [6],
        "dep*": [],
        "NEAR AND": [7],
        "NOT deploy": [],
        "(x:y)": [7],
        "^z": [7],
        "ok": [8],
        "\\slash": [9],
        "{curly}": [9],
        "deploy missing": [],
        "": [],
        "   ": [],
        "de\0ploy": [0],
        '"': [5],
    }

    @pytest.mark.parametrize("indexed", [True, False])
    async def test_search_query_has_no_syntax(self, store: Any, indexed: bool) -> None:
        await begin(store)
        await store.append("s", [message(f"e{place}", text) for place, text in enumerate(self.TEXTS)])
        if indexed:
            await fill_search_index(store)
        found = {query: await store.search(query) for query in self.QUERIES}
        places = {query: sorted(int(hit.event.id[1:]) for hit in hits) for query, hits in found.items()}
        assert places == self.QUERIES

    async def test_search_finds_tool_arguments_and_results(self, store: Any) -> None:
        """H1: everything that was compacted can be searched."""
        await begin(store)
        call = {"function": {"name": "read", "arguments": '{"path": "/src/\\u00fcber.py"}'}}
        raw = {"role": "assistant", "content": None, "tool_calls": [call]}
        block = {"type": "tool_result", "content": [{"type": "text", "text": "ENOENT nothing there"}]}
        used = {"type": "tool_use", "input": {"ticket": 4711}}
        for number, part in enumerate((raw, block, used)):
            await store.append("s", [Event(f"e{number}", "message", "t", {"message": part})])
        for query, expected in (("über.py", "e0"), ("enoent", "e1"), ("4711", "e2")):
            assert [hit.event.id for hit in await store.search(query)] == [expected]
        assert await store.search("tool_calls") == []

    async def test_search_by_session_owner_and_limit(self, store: Any) -> None:
        await begin(store, "e1", "e2", session_id="a", owner="ann")
        await begin(store, "e1", session_id="b", owner="bob")
        await fork(store, "a", 1, "f")
        await store.append("f", [message("f2")])
        await fill_search_index(store)
        assert len(await store.search("says")) == 4
        assert len(await store.search("says", limit=2)) == 2
        assert await store.search("says", limit=0) == []
        assert {hit.session_id for hit in await store.search("says", owner="bob")} == {"b"}
        inside = await store.search("says", session_id="f")
        assert sorted((hit.session_id, hit.event.id) for hit in inside) == [("f", "e1"), ("f", "f2")]
        assert await store.search("says", session_id="a", owner="bob") == []

    async def test_search_hit_has_snippet(self, store: Any) -> None:
        await begin(store)
        await store.append("s", [message("e1", "x " * 500 + "Needle" + " y" * 500)])
        [hit] = await store.search("needle")
        assert "Needle" in hit.snippet
        assert len(hit.snippet) < 200

    async def test_search_ranks_best_match_first(self, store: Any) -> None:
        await begin(store)
        await store.append("s", [message("far", "needle " + "hay " * 3000), message("near", "needle needle")])
        await fill_search_index(store)
        assert [hit.event.id for hit in await store.search("needle")] == ["near", "far"]


async def fill_search_index(store: Any) -> None:
    """Fills the search index now, for stores that fill it in the background."""
    if isinstance(store, PostgresStore):
        from holdfast.stores.postgres.index import fill_index

        while await store._run(lambda c, _: fill_index(c, store._tenant)) != "done":
            pass
    writer = getattr(store, "_writer", None)
    if writer is not None:
        from holdfast.stores.sqlite import index

        def fill_all(connection: Any) -> None:
            connection.execute("COMMIT")
            while index.fill_index(connection):
                pass
            connection.execute("BEGIN IMMEDIATE")

        await writer.run(fill_all)


class TestClosing:
    async def test_closed_store_raises(self, store: Any) -> None:
        await begin(store, "e1")
        await store.close()
        await store.close()
        for call in (
            store.session("s"),
            store.append("s", [message("e2")]),
            store.read("s", Slice()),
            store.search("x"),
            store.sessions(),
        ):
            with pytest.raises(StoreClosed):
                await call

    async def test_context_manager_closes_store(self, store: Any) -> None:
        async with store as opened:
            await begin(opened, "e1")
        with pytest.raises(StoreClosed):
            await store.session("s")


class TestReopening:
    async def test_reopened_store_has_all_data(self, reopen: Any) -> None:
        async with reopen() as store:
            await begin(store, "e1", metadata={"k": 1}, system="be brief")
            await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1), media={"d": "x"})
            await store.append("s", [message("x1", lane="sub"), message("x2", lane="sub")])
            await fork(store, "s", 2, "f")
            await store.append("f", [message("f3")])
            before = [await store.session("s"), await store.session("f"), await store.read("f", EVERYTHING)]
        async with reopen() as store:
            after = [await store.session("s"), await store.session("f"), await store.read("f", EVERYTHING)]
            assert after == before
            assert await ids(store) == ["e1", "c1", "x1", "x2"]
            assert await store.media("s", ["d"]) == {"d": "x"}
            assert len(await store.search("says")) == 4
            assert (await store.append("s", [message("e1")])).fresh is False
            assert (await store.append("s", [message("e5")], after=4)).version == 5
            assert await store.problems("s") == await store.problems("f") == []

    async def test_two_stores_on_same_place_share_data(self, reopen: Any) -> None:
        async with reopen() as one, reopen() as two:
            await begin(one, "e1")
            assert (await two.append("s", [message("e2")])).version == 2
            assert (await one.append("s", [message("e3")], after=2)).version == 3
            assert (await two.append("s", [message("e1")])).fresh is False
            assert await ids(two) == await ids(one) == ["e1", "e2", "e3"]
            with pytest.raises(StaleVersion):
                await two.append("s", [message("e4")], after=2)
