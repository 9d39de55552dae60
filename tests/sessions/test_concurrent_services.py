"""Services that share sessions: what one writes while another is half done, behind, or repeats itself (S3, H1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from holdfast import KeepLedger, MemoryStore, Outcome, PruneToolResults, SessionService, SlidingWindow, check
from holdfast.stores import Log
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
SECRET = "sk-live-7Hq2Zr9Wt4"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(id: str) -> dict[str, Any]:
    tool = {"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [tool]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


async def shown(service: SessionService, session: str = "s", lane: str | None = None) -> str:
    context = await service.context(session, lane)
    assert check(context.messages, "openai-chat") == []
    assert await service.verify(session) == []
    return str(context.messages)


class Interposed:
    """A store that runs a function once, right before the nth call of a name."""

    def __init__(self, store: Any, name: str, act: Callable[[], Awaitable[Any]], at: int = 1) -> None:
        self._store, self._name, self._act, self._left = store, name, act, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        async def run(*args: Any, **named: Any) -> Any:
            self._left -= name == self._name
            if name == self._name and self._left == 0:
                await self._act()
            return await found(*args, **named)

        return run if callable(found) else found


async def test_lane_seen_before_its_first_event_starts_where_it_starts(store: Log) -> None:
    async with SessionService(store) as service:
        other = SessionService(store)
        await service.create(id="s", format="openai-chat")
        await service.append("s", user("one"))
        for each in (service, other):
            assert "two" not in await shown(each, lane="sub")
        await service.append("s", user("two"))
        await service.append("s", user("three"), lane="sub")
        for each in (service, other):
            assert "two" in await shown(each, lane="sub")


async def test_fork_before_a_mark_of_a_lane_has_the_lane_as_it_was(store: Log) -> None:
    async with SessionService(store) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", user("root"), id="r")
        await service.append("s", [user(f"lane {number}") for number in range(6)], lane="sub", id="l")
        await service.compact("s", always, SlidingWindow(2), lane="sub")
        before = await shown(service, lane="sub")
        await service.append("s", user("root again"), id="at")
        await service.append("s", user("lane 6"), lane="sub")
        await service.compact("s", always, SlidingWindow(1), lane="sub")
        await service.redact("s", "r")
        await service.fork("s", "at", id="f")
        assert await shown(service, "f", "sub") == before.replace("root'", "[redacted]'")


async def test_retried_call_does_not_close_itself(store: Log) -> None:
    """Its result, which comes later, is shown."""
    async with SessionService(store) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", user("Go."))
        await service.append("s", call("c1"), id="a")
        for retrying in (service, SessionService(store)):
            assert [event.id for event in await retrying.append("s", call("c1"), id="a")] == ["a"]
            assert [event.id for event in await retrying.append("s", [call("c1")], id="a")] == ["a"]
        await service.append("s", result("c1", "found it"))
        assert "found it" in await shown(service)
        assert len(await service.events("s")) == 3


async def test_pruning_leaves_a_pinned_result() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    for name in ("c1", "c2"):
        await service.append("s", [user(f"Go on, {name}."), call(name)])
        await service.append("s", result(name, f"{name} found " + "words " * 99), id=name)
    await service.append("s", [{"role": "assistant", "content": "Found."}, user("Thanks.")])
    await service.pin("s", "c1")
    assert (await service.prune("s", PruneToolResults(0, 0))).outcome == Outcome.COMPACTED
    assert "c1 found" in (text := await shown(service)) and "c2 found" not in text


@pytest.mark.parametrize("strategy", [SlidingWindow(2), KeepLedger(300)], ids=["window", "ledger"])
async def test_pinned_user_message_of_a_split_turn_stays_in_later_compactions(strategy: Any) -> None:
    service = SessionService(MemoryStore(), estimator="chars/4")
    await service.create(id="s", format="openai-chat")
    await service.append("s", user("Never touch the lighthouse."), id="pinned")
    await service.pin("s", "pinned")
    for turn in range(3):
        for step in range(6):
            await service.append("s", [call(f"{turn}{step}"), result(f"{turn}{step}", "The water is deep. " * 20)])
        assert (await service.compact("s", always, strategy)).outcome == Outcome.COMPACTED
        assert "lighthouse" in await shown(service)
        await service.append("s", user(f"Now part {turn}."))


async def test_redacting_a_pinned_result_leaves_a_valid_context(store: Log) -> None:
    async with SessionService(store) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", [user("Go."), call("c1")])
        await service.append("s", result("c1", f"The key is {SECRET}."), id="r")
        await service.append("s", [user(f"Part {part}, please.") for part in range(6)])
        await service.pin("s", "r")
        await service.compact("s", always, SlidingWindow(2))
        assert SECRET in await shown(service)
        await service.redact("s", "r")
        assert SECRET not in (text := await shown(service)) and "[redacted]" in text


async def test_redacting_a_copy_leaves_what_is_pinned_of_its_source() -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", user("Go."))
        await service.append("s", call("c1"), id="call")
        reply = {"role": "assistant", "content": "Done."}
        await service.append("s", [result("c1", "Done."), reply, *(user(f"Part {part}, please.") for part in range(6))])
        await service.pin("s", "call")
        await service.compact("s", always, SlidingWindow(2))
        copy = await service.restore("s", "call")
        await service.append("s", [user(f"Part {part}, please.") for part in range(6, 12)])
        await service.compact("s", always, SlidingWindow(2))
        before = await shown(service)
        await service.redact("s", copy.id)
        assert await shown(service) == before
        assert await service.verify("s") == []


async def test_redacted_text_is_gone_from_a_fork_of_the_empty_session(store: Log) -> None:
    async with SessionService(store) as service:
        await service.create(id="s", system=f"Use {SECRET}.")
        await service.fork("s", id="f")
        await service.append("f", user(f"It is {SECRET}."))
        await service.redact_text("s", SECRET)
        assert SECRET not in str([await service.export("f"), await service.export("s")])


async def test_redactions_of_one_message_at_once_are_one(store: Log) -> None:
    """The other comes after the message was read, before its session was."""
    async with SessionService(store) as service:
        await service.create(id="s")
        await service.append("s", user(SECRET), id="u")
        late = SessionService(Interposed(store, "session", lambda: service.redact("s", "u"), 2))  # type: ignore[arg-type]
        await late.redact("s", "u")
        assert [event.kind for event in await service.events("s")] == ["message", "redaction"]


async def test_copy_is_not_restored_from_text_that_is_redacted_meanwhile(store: Log) -> None:
    async with SessionService(store) as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", user(f"It is {SECRET}."), id="u")
        await service.append("s", [user(f"Part {part}, please.") for part in range(6)])
        await service.compact("s", always, SlidingWindow(2))
        for lane in (None, "new"):
            late = SessionService(Interposed(store, "append", lambda: service.redact("s", "u")))  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="redacted"):
                await late.restore("s", "u", lane)
        assert SECRET not in str(await service.export("s"))


async def test_fork_is_not_made_from_a_prompt_that_is_redacted_meanwhile(store: Log) -> None:
    async with SessionService(store) as service:
        for name, at in (("s", None), ("t", "u")):
            await service.create(id=name, system=f"Use {SECRET}.")
            await service.append(name, user("Go."), id="u")
            redact = partial(service.redact_text, name, SECRET)
            fork = await SessionService(Interposed(store, "create", redact)).fork(name, at)  # type: ignore[arg-type]
            assert SECRET not in str(await service.export(fork.id))


async def test_compaction_of_a_lane_without_events_is_refused_after_a_redaction(store: Log) -> None:
    async with SessionService(store, estimator="chars/4") as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", [user(f"Part {part} of {SECRET}, " + "please. " * 50) for part in range(6)], id="u")
        late = SessionService(
            Interposed(store, "append", lambda: service.redact_text("s", SECRET)),  # type: ignore[arg-type]
            estimator="chars/4",
        )
        done = await late.compact("s", always, KeepLedger(300), "rebase", lane="sub")
        assert done.outcome == Outcome.CONFLICT
        assert SECRET not in str(await service.export("s"))
