"""Deciding and trimming, beside LangChain's counting and trimming, on the same 10,000 messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from holdfast import MemoryStore, SessionService, TokenCount, TokenWindow, compact
from holdfast.view import Plan, Request, View

from .measure import Options, Ratio, fastest, many
from .mixes import Json, agent, chat, for_langchain

COUNT = 10_000
SHARE = 10
"""The window is the newest tenth of all tokens."""
ROUNDS = 15


def run(options: Options) -> Iterator[Ratio]:
    for name, messages in (("chat", chat(COUNT)), ("agent", agent(COUNT))):
        yield from _compare(name, messages)


def _compare(name: str, messages: list[Json]) -> Iterator[Ratio]:
    theirs = for_langchain(messages)
    window = count_tokens_approximately(theirs) // SHARE
    view = asyncio.run(_live(messages))
    trigger, strategy = TokenCount(10**9), TokenWindow(window)
    assert isinstance(strategy(Request(view)), Plan)

    def trim() -> object:
        return trim_messages(
            theirs, strategy="last", max_tokens=window, token_counter=count_tokens_approximately, start_on="human"
        )

    def trim_ours() -> object:
        return compact(messages, budget=window, strategy=TokenWindow(window), estimator="chars/4")

    count, decide, trimmed, plan, stateless = fastest(
        [
            lambda: count_tokens_approximately(theirs),
            many(lambda: trigger(Request(view)), 1_000),
            trim,
            many(lambda: strategy(Request(view)), 100),
            trim_ours,
        ],
        ROUNDS,
    )
    decide, plan = decide / 1_000, plan / 100
    size = f"of {COUNT:,} messages, {name}"
    yield _faster(f"decision {size}", "LangChain's count / our trigger in a live session", count, decide, 500)
    yield _faster(f"window plan {size}", "LangChain's trim / our plan in a live session", trimmed, plan, 50)
    yield _faster(f"stateless trim {size}", "LangChain's trim / compact(), decode and encode in", trimmed, stateless, 2)


def _faster(name: str, compares: str, theirs: float, ours: float, aim: float) -> Ratio:
    return Ratio(name, compares, theirs / ours, aim, "at least", {"LangChain": theirs, "Holdfast": ours})


async def _live(messages: list[Json]) -> View:
    """The view of a session that these messages were appended to."""
    async with SessionService(MemoryStore(), estimator="chars/4") as service:
        await service.create(id="s", format="openai-chat")
        await service.append("s", messages)
        live = await service._live("s")
        return await live.view()
