"""Trigger decision and trimming, compared with LangChain's counting and trimming of the same 10,000 messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from benchmarks.measure import Options, Ratio, fastest, repeat
from benchmarks.mixes import Json, agent, chat, for_langchain
from holdfast import MemoryStore, SessionService, TokenCount, TokenWindow, compact
from holdfast.context import Plan, Request, View

COUNT = 10_000
SHARES = {"a half": 2, "a tenth": 10}
"""Share of all tokens that the window holds: LangChain's trim takes longer the more is kept."""
ROUNDS = 12
TIMES = 100
"""Repetitions of very short calls in one timing."""


def run(options: Options) -> Iterator[Ratio]:
    for name, messages in (("chat", chat(COUNT)), ("agent", agent(COUNT))):
        yield from _compare(name, messages)


def _compare(name: str, messages: list[Json]) -> Iterator[Ratio]:
    theirs, view = for_langchain(messages), asyncio.run(_live(messages))
    total = count_tokens_approximately(theirs)
    trigger = TokenCount(10**9)
    count, decide = fastest(
        [lambda: count_tokens_approximately(theirs), repeat(lambda: trigger(Request(view)), TIMES)], ROUNDS
    )
    size = f"{COUNT:,} messages, {name}"
    yield _faster(f"decision, {size}", "LangChain's count / our trigger in a live session", count, decide / TIMES, 500)
    for share, part in SHARES.items():
        trim, plan, compacted = _trims(messages, theirs, view, total // part)
        shown = f"{size}, {share} kept"
        yield _faster(f"plan, {shown}", "LangChain's trim / our window plan in a live session", trim, plan, 50)
        yield _faster(f"trim, {shown}", "LangChain's trim / compact(), decode and encode in", trim, compacted, 2)


def _trims(messages: list[Json], theirs: list[Any], view: View, window: int) -> tuple[float, float, float]:
    """Times of their trim, our plan and our stateless trim, down to the same window."""
    strategy = TokenWindow(window)
    assert isinstance(strategy(Request(view)), Plan)
    trim, plan, compacted = fastest(
        [
            lambda: trim_messages(
                theirs, strategy="last", max_tokens=window, token_counter=count_tokens_approximately, start_on="human"
            ),
            repeat(lambda: strategy(Request(view)), TIMES),
            lambda: compact(messages, budget=window, strategy=strategy, estimator="chars/4"),
        ],
        ROUNDS,
    )
    return trim, plan / TIMES, compacted


def _faster(name: str, compares: str, theirs: float, ours: float, aim: float) -> Ratio:
    return Ratio(name, compares, theirs / ours, aim, "at least", {"LangChain": theirs, "Holdfast": ours})


async def _live(messages: list[Json]) -> View:
    """The live view of a session with these messages."""
    async with SessionService(MemoryStore(), estimator="chars/4") as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", messages)
        live = await service._live("s")
        return await live.view()
