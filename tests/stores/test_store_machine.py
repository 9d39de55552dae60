"""Stateful property test: every store behaves like MemoryStore (S3, H1)."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.context.events import Event, LaneTip, SessionRecord
from holdfast.errors import HoldfastError
from holdfast.stores import JSONLStore, MemoryStore, PostgresStore, Slice, SQLiteStore, Unchanged
from stores.logs import rewriting

NAMES = st.sampled_from(["a", "b", "c", "../D"])
IDS = st.integers(0, 25).map(lambda number: f"e{number}")
LANES = st.sampled_from([None, None, None, "", "sub", "sub.sub"])
TEXTS = st.sampled_from(["hello", "Größe", "数据库", "a_b%", "👍", 'say "hi"'])
SMALL = st.integers(0, 12)
EVENTS = st.builds(
    lambda event_id, kind, lane, text: Event(event_id, kind, "t", {"text": text, "seq": 1}, lane),
    IDS,
    st.sampled_from(["message", "compaction", "new"]),
    LANES,
    TEXTS,
)
CONDITIONS = st.one_of(st.none(), st.builds(Unchanged, version=SMALL), st.builds(Unchanged, lane=LANES, mark=SMALL))
SLICES = st.builds(
    Slice,
    lane=LANES,
    any_lane=st.booleans(),
    after=SMALL,
    until=st.none() | SMALL,
    kinds=st.sampled_from([(), ("message",), ("new", "compaction")]),
    ids=st.just(()) | st.lists(IDS, max_size=4).map(tuple),
    limit=st.none() | st.integers(0, 5),
    newest=st.booleans(),
)


@pytest.fixture(autouse=True, scope="module")
def database(postgres: str) -> None:
    Stores.database = postgres


class Stores(RuleBasedStateMachine):
    """Runs random operations on all stores, with MemoryStore as the model."""

    database = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.open()
        self.model = MemoryStore()

    def open(self) -> None:
        self.stores: dict[str, Any] = {
            "jsonl": JSONLStore(self.folder / "files"),
            "sqlite": SQLiteStore(self.folder / "s.db", "NORMAL"),
            "postgres": PostgresStore(self.database, tenant=str(self.folder)),
        }

    def teardown(self) -> None:
        for store in self.stores.values():
            self.runner.run(store.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def same(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """Runs the call on all stores; asserts the same result or error."""
        expected = self.runner.run(self.outcome(self.model, call))
        for name, store in self.stores.items():
            assert self.runner.run(self.outcome(store, call)) == expected, name
        return expected

    @staticmethod
    async def outcome(store: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            return await call(store)
        except HoldfastError as error:
            return type(error), str(error)

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        self.same(lambda store: store.create(SessionRecord(name, "t", owner=name[0])))

    @rule(name=NAMES, parent=NAMES, at=SMALL, share=st.booleans())
    def fork(self, name: str, parent: str, at: int, share: bool) -> None:
        if name not in self.model._sessions and parent in self.model._sessions:
            record = self.runner.run(self.model.session(parent))
            seq = min(at, record.version)
            lanes = record.lanes if share and seq == record.version else {}
            forked = SessionRecord(name, "t", parent=parent, parent_seq=seq, version=seq, lanes=lanes)
            self.same(lambda store: store.create(forked))

    @rule(name=NAMES, events=st.lists(EVENTS, max_size=4), after=st.none() | SMALL, when=CONDITIONS)
    def append(self, name: str, events: list[Event], after: int | None, when: Unchanged | None) -> None:
        self.same(lambda store: store.append(name, events, after=after, when=when, media={"d": "x"}))

    @rule(name=NAMES, event=EVENTS, start=SMALL)
    def mark(self, name: str, event: Event, start: int) -> None:
        version = self.model._sessions[name].version if name in self.model._sessions else 0
        tip = LaneTip(epoch=event.id, start=min(start, version))
        self.same(lambda store: store.append(name, [event], tip=tip))

    @rule(name=NAMES, which=SLICES)
    def read(self, name: str, which: Slice) -> None:
        self.same(lambda store: store.read(name, which))

    @rule(name=NAMES, event=EVENTS)
    def rewrite(self, name: str, event: Event) -> None:
        known = self.model._sessions.get(name)
        change = rewriting(
            name,
            known.version if known else 0,
            event,
            forget_media=("d",) if event.kind == "new" else (),
            since=event.seq,
        )
        self.same(lambda store: store.rewrite([change]))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.same(lambda store: store.delete(name))

    @rule(name=NAMES)
    def media(self, name: str) -> None:
        self.same(lambda store: store.media(name, ["d", "none"]))

    @rule(text=TEXTS, name=st.none() | NAMES, owner=st.sampled_from([None, "a"]))
    def search(self, text: str, name: str | None, owner: str | None) -> None:
        async def found(store: Any) -> Any:
            hits = await store.search(text, session_id=name, owner=owner, limit=1000)
            return sorted((hit.session_id, hit.event.seq, hit.event.id, hit.snippet) for hit in hits)

        self.same(found)

    @rule()
    def reopen(self) -> None:
        for store in self.stores.values():
            self.runner.run(store.close())
        self.open()

    @invariant()
    def same_sessions_and_nothing_wrong(self) -> None:
        records = self.same(lambda store: store.sessions())
        for record in records:
            assert self.same(lambda store, name=record.id: store.problems(name)) == []


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
