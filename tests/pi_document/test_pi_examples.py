"""Every loader and branching example of the pi document (P4-P7, P10), with its own letters.

u is the user's, a the assistant's, t a tool's result. The examples' summaries come from a model; here a
strategy with a fixed text stands in for it, so that only the loader is looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import MemoryStore, SessionService
from holdfast.context import Plan, Request
from holdfast.messages import framed_message
from holdfast.triggers import TokenCount, always

pytestmark = pytest.mark.anyio

PREFIX = "Summary"
WORDS = "said at some length " * 20


class KeepAndSummarise:
    """Keeps the last n messages, snapped forward to a user message, never from before the last record (P7)."""

    def __init__(self, keep: int, summary: str) -> None:
        self.keep, self.summary = keep, summary

    def __call__(self, request: Request) -> Plan:
        view = request.view
        after_record = [i for i, name in enumerate(view.ids) if view.events[name].epoch == view.checkpoint_id]
        first = max(after_record[0], len(view.messages) - self.keep)
        cut = next(view.turns_from(first))
        note = framed_message(f"{PREFIX}: {self.summary}")
        return request.plan.archive(cut).show([note], self.summary).made_by("pi")


class Session:
    def __init__(self, service: SessionService, session_id: str) -> None:
        self.service, self.id = service, session_id
        self._count: dict[str, int] = {}
        self._call = 0

    async def append_letters(self, letters: str) -> None:
        """`u1 a1 t1`: an assistant message that a tool result follows holds the call."""
        names = letters.split()
        for place, name in enumerate(names):
            next_name = names[place + 1] if place + 1 < len(names) else ""
            await self._append(name, calls=name[0] == "a" and next_name[:1] == "t", names=names[place + 1 :])

    async def _append(self, name: str, *, calls: bool, names: list[str]) -> None:
        seen = self._count[name] = self._count.get(name, 0) + 1
        event_id = name if seen == 1 else f"{name}.{seen}"
        if name[0] == "u":
            message = {"role": "user", "content": f"{name} {WORDS}"}
        elif name[0] == "t":
            message = {"role": "tool", "tool_call_id": self._open.pop(0), "content": f"{name} {WORDS}"}
        else:
            message = {"role": "assistant", "content": f"{name} {WORDS}"}
            if calls:
                count = next((i for i, other in enumerate(names) if other[0] != "t"), len(names))
                self._open = [f"c{self._call + i}" for i in range(count)]
                self._call += count
                message["tool_calls"] = [
                    {"id": c, "type": "function", "function": {"name": "tool", "arguments": "{}"}} for c in self._open
                ]
        await self.service.append(self.id, message, id=event_id)

    async def compact(self, keep: int, summary: str) -> None:
        result = await self.service.compact(self.id, always, KeepAndSummarise(keep, summary))
        assert result.outcome == "compacted", result.why

    async def visible(self, session_id: str | None = None) -> str:
        context = await self.service.context(session_id or self.id)
        firsts = [str(message["content"]).partition("\n")[0] for message in context]
        return " ".join(first.replace(": ", ":").partition(" ")[0] for first in firsts)


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    async with SessionService(MemoryStore()) as service:
        yield Session(service, (await service.create()).id)


FIRST = "u1 a1 t1 t1 a1 u2 a2 u3 a3 t3 a3 t3 a3 u4 a4 t4 a4"


async def test_p6_single_compaction_keeps_the_last_four(session: Session) -> None:
    await session.append_letters(FIRST)
    await session.compact(4, "one")
    assert await session.visible() == "Summary:one u4 a4 t4 a4"
    await session.append_letters("u5 a5")
    assert await session.visible() == "Summary:one u4 a4 t4 a4 u5 a5"


async def test_p7_second_compaction_does_not_cross_the_first(session: Session) -> None:
    await session.append_letters(FIRST)
    await session.compact(4, "one")
    await session.append_letters("u5 a5 u6 a6 t6 a6 u7 a7")
    await session.compact(3, "two")
    assert await session.visible() == "Summary:two u7 a7"


async def test_p6_nothing_before_a_record_is_rewritten(session: Session) -> None:
    await session.append_letters(FIRST)
    before = await session.service.export(session.id)
    await session.compact(4, "one")
    after = await session.service.export(session.id)
    assert after[: len(before)] == before
    assert after[-1]["kind"] == "compaction"
    assert after[-1]["body"]["tokens_before"] > 0
    assert after[-1]["body"]["summary"] == "one"
    assert after[-1]["body"]["boundary"] == "a3.3"


async def branching(session: Session) -> None:
    await session.append_letters("u1 a1 u2 a2")
    await session.compact(2, "one")
    await session.append_letters("u3 a3 u4 a4")


async def test_p10_fork_after_the_compaction_keeps_it(session: Session) -> None:
    await branching(session)
    fork = await session.service.fork(session.id, at="u3")
    assert await session.visible(fork.id) == "Summary:one u2 a2 u3"
    assert fork.parent == session.id


async def test_p10_fork_before_the_compaction_undoes_it(session: Session) -> None:
    await branching(session)
    fork = await session.service.fork(session.id, at="u2")
    assert await session.visible(fork.id) == "u1 a1 u2"
    assert await session.service.events(fork.id, kind="compaction") == []


async def test_p10_source_of_a_fork_is_untouched(session: Session) -> None:
    await branching(session)
    before = await session.service.export(session.id)
    fork = await session.service.fork(session.id, at="u3")
    await session.service.append(fork.id, {"role": "assistant", "content": f"other {WORDS}"})
    assert await session.service.export(session.id) == before
    assert await session.visible(fork.id) == "Summary:one u2 a2 u3 other"


async def test_p10_fork_outlives_its_source(session: Session) -> None:
    await branching(session)
    fork = await session.service.fork(session.id, at="u3")
    await session.service.delete(session.id)
    assert await session.visible(fork.id) == "Summary:one u2 a2 u3"
    assert await session.service.verify(fork.id) == []


async def test_undo_restores_the_context_byte_for_byte(session: Session) -> None:
    await session.append_letters(FIRST)
    before = await session.service.context(session.id)
    await session.compact(4, "one")
    await session.service.undo(session.id)
    assert await session.service.context(session.id) == before.messages


async def test_undo_after_later_appends_keeps_them(session: Session) -> None:
    await session.append_letters("u1 a1 u2 a2")
    await session.compact(2, "one")
    await session.append_letters("u3 a3")
    await session.service.undo(session.id)
    assert await session.visible() == "u1 a1 u2 a2 u3 a3"


async def test_automatic_compaction_after_undo_waits_for_the_user(session: Session) -> None:
    await session.append_letters("u1 a1 u2 a2")
    await session.compact(2, "one")
    await session.service.undo(session.id)
    automatic = TokenCount(1)
    waiting = await session.service.compact(session.id, automatic, KeepAndSummarise(2, "two"))
    assert (waiting.outcome, waiting.why.split(":")[0]) == ("not_needed", "a compaction was undone")
    await session.append_letters("u3")
    done = await session.service.compact(session.id, automatic, KeepAndSummarise(2, "two"))
    assert done.outcome == "compacted"
