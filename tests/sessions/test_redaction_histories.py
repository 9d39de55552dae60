"""Random histories of forks, deletions, handoffs and compactions: a redacted text is nowhere in a store (H13)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import MemoryStore, SessionService
from holdfast.stores import JSONLStore, Search, SQLiteStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

SECRET = "sk-live-7Hq2Zr9Wt4"
SAYS = "The harbour's key is {}, keep it in /srv/deploy.py. " + "The water is deep. " * 5
FORMS: list[Callable[[str], str]] = [
    str,
    json.dumps,
    lambda text: json.dumps({"status": text}),
    lambda text: f"?k={text}",
]
STORES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: MemoryStore(),
    "jsonl": lambda folder: JSONLStore(folder / "log"),
    "sqlite": lambda folder: SQLiteStore(folder / "log.db", "NORMAL"),
}
PLACES = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("say"), PLACES, st.sampled_from(range(len(FORMS))), st.booleans()),
    st.tuples(st.just("call"), PLACES),
    st.tuples(st.sampled_from(["fork", "delete", "compact", "handoff", "restore"]), PLACES),
    st.tuples(st.just("redact message"), PLACES, PLACES),
)


class History:
    """Carries out steps, and remembers which sessions come from which."""

    def __init__(self, service: SessionService) -> None:
        self.service = service
        self.families = {"s0": "s0"}
        """Family of each session: that of the one that it was forked from."""
        self.sources: dict[str, str] = {}
        """Session that each family was handed off from."""
        self.made = 0

    @property
    def names(self) -> list[str]:
        return list(self.families)

    def reached_from(self, name: str) -> set[str]:
        """The sessions that a redaction in this one reaches: its family, and those handed off from what is there."""
        families = {self.families[name]}
        for _ in self.sources:
            families |= {new for new, source in self.sources.items() if self.families.get(source) in families}
        return {each for each, family in self.families.items() if family in families}

    def pick(self, place: int) -> str:
        return self.names[place % len(self.names)]

    async def do(self, step: tuple[Any, ...]) -> None:
        service, name = self.service, self.pick(step[1])
        self.made += 1
        match step[0]:
            case "say":
                text = SAYS.format(FORMS[step[2]](SECRET))
                await service.append(name, {"role": "user", "content": text}, "lane" if step[3] else None)
            case "call":
                arguments = json.dumps({"id": SECRET, SECRET: {"kind": SECRET}})
                function = {"name": "f", "arguments": arguments}
                call = {"id": f"c{self.made}", "type": "function", "function": function}
                result = {"role": "tool", "tool_call_id": call["id"], "content": f"ERROR: {SECRET} was denied"}
                await service.append(name, {"role": "assistant", "content": None, "tool_calls": [call]})
                await service.append(name, result)
            case "fork":
                fork = await service.fork(name, id=f"f{self.made}")
                self.families[fork.id] = self.families[name]
            case "delete" if len(self.names) > 1:
                del self.families[name]
                await service.store.delete(name)
            case "compact":
                await service.compact(name, always, KeepLedger(300))
            case "handoff":
                new = await service.create(id=f"h{self.made}")
                self.families[new.id], self.sources[new.id] = new.id, name
                draft = await service.handoff(name, "Go on with the harbour.")
                await service.append(new.id, {"role": "user", "content": draft.message})
            case "restore" | "redact message":
                events = await service.events(name, kind="message", archived=step[0] == "restore" or None, lane="")
                events = [event for event in events if "redacted" not in event.body]
                if events and step[0] == "restore":
                    await service.restore(name, events[0].id)
                elif events:
                    event = events[step[2] % len(events)]
                    await service.redact(name, event.id)
                    if event.seq == 1:  # the first message of a handoff, the only one that names its source
                        self.sources.pop(self.families[name], None)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def carry_out(kind: str, steps: list[tuple[Any, ...]], folder: Path) -> None:
    async with SessionService(STORES[kind](folder)) as service:
        history = History(service)
        await service.create(id="s0", metadata={"id": SECRET})
        await service.append("s0", {"role": "user", "content": SAYS.format(SECRET)})
        for step in steps:
            await history.do(step)
        for name in history.names:
            done = await service.redact_text(name, SECRET)
            assert done.left == ()
            for reached in history.reached_from(name):
                assert SECRET not in str(await service.export(reached)), (name, reached)
        for name in history.names:
            assert await service.verify(name) == []
            assert SECRET not in str([await service.export(name), (await service.context(name)).messages]), name
        assert SECRET not in str([await service.get(name) for name in history.names])
        assert isinstance(service.store, Search)
        assert await service.store.search("7Hq2Zr9Wt4") == []
        open_files = contents(folder)
    closed_files = contents(folder)
    for files in (open_files, closed_files):
        assert [name for name, data in files.items() if b"7hq2zr9wt4" in data.lower()] == []


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=9))
def test_h13_redacted_text_is_nowhere_after_any_history(kind: str, steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(carry_out, kind, steps, Path(folder))
