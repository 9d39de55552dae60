"""What people get wrong most often: each is one line that names the cause, then what to do, or simply works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import (
    HoldfastError,
    JSONLStore,
    Keeper,
    MemoryStore,
    SessionService,
    SlidingWindow,
    SQLiteStore,
    TokenCount,
    TurnCount,
    check,
    compact,
    open_store,
)

USER: Any = {"role": "user", "content": "hi"}


def of(content: Any, role: str = "user") -> list[Any]:
    return [{"role": role, "content": content}]


class Odd:
    role, content = "user", "hi"


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "bytes as content": (lambda: compact(of(b"hi"), budget=9), "decode them, content.decode()"),
    "None as a user's content": (lambda: compact(of(None), budget=9), "has None as its content: use a text"),
    "a number as content": (lambda: compact(of(5), budget=9), "has the number 5 as its content: use a text"),
    "an unknown role": (lambda: compact(of("hi", "human"), budget=9), "role 'human': use one of system"),
    "a text for messages": (lambda: compact("hi", budget=9), "must be a list of messages, not str"),  # type: ignore[arg-type]
    "one message for a list": (lambda: compact(USER, budget=9), "must be a list of messages, not dict"),
    "texts in the list": (lambda: compact(["hi"], budget=9), "Message 0 is a str: pass dicts"),  # type: ignore[list-item]
    "an object of no SDK": (lambda: compact([Odd()], budget=9), "Message 0 is a Odd: pass dicts"),  # type: ignore[list-item]
    "two formats in a list": (
        lambda: compact([USER, {"role": "model", "parts": [{"text": "x"}]}], budget=9),
        "pass messages of one format at a time",
    ),
    "no budget": (lambda: compact([USER]), "pass budget=, or preset= and window="),
    "a budget of words": (lambda: compact([USER], budget="100k"), "whole number of at least 1, not '100k'"),  # type: ignore[arg-type]
    "a target over the budget": (lambda: compact([USER], budget=9, target=10), "choose a target below the budget"),
    "a misspelled preset": (lambda: compact([USER], preset="codx", window=9), "did you mean 'codex'?"),
    "a misspelled format": (lambda: check([USER], "opnai"), "use one of openai-chat"),
    "a misspelled strategy": (lambda: compact([USER], budget=9, strategy="slidng:2"), "did you mean 'sliding'?"),
    "a model's name for an estimator": (lambda: compact([USER], budget=9, estimator="gpt4"), "use one of chars/4"),
    "a summarizer without provider": (
        lambda: compact([USER], budget=9, summarizer="claude-sonnet-5"),
        "did you mean anthropic:claude-sonnet-5?",
    ),
    "a result as previous": (
        lambda: compact([USER], budget=9, previous=compact([USER], budget=9)),  # type: ignore[arg-type]
        "pass result.checkpoint",
    ),
    "a text as usage": (lambda: compact([USER], budget=9, usage="500"), "token counts that a provider reported"),  # type: ignore[arg-type]
    "zero turns": (lambda: TurnCount(0), "at least 1, not 0"),
    "a threshold of words": (lambda: TokenCount("4k"), "at least 1, not '4k'"),  # type: ignore[arg-type]
    "a number as a store": (lambda: SessionService(5), "its address such as 'agent.db'"),  # type: ignore[arg-type]
    "an unknown kind of store": (lambda: open_store("mysql://x"), "use memory:, sqlite:///file.db"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_likely_mistake_is_answered_with_its_cure(mistake: str) -> None:
    do, cure = MISTAKES[mistake]
    with pytest.raises(HoldfastError) as raised:
        do()
    assert cure in str(raised.value) and "\n" not in str(raised.value)


async def _two_messages(sessions: SessionService, session: Any) -> None:
    await sessions.append(session.id, USER, USER)


async def _record_for_id(sessions: SessionService, session: Any) -> None:
    await sessions.append(session, USER)


async def _unknown_session(sessions: SessionService, session: Any) -> None:
    await sessions.context("nobody")


async def _no_format(sessions: SessionService, session: Any) -> None:
    await sessions.append(session.id, USER)
    (await sessions.context(session.id)).request  # noqa: B018 - computed when it is read


SESSION_MISTAKES: dict[str, tuple[Callable[[SessionService, Any], Awaitable[None]], str]] = {
    "two messages without a list": (_two_messages, "pass several as [one, another]"),
    "the record in place of its id": (_record_for_id, "named by its id, as in session.id"),
    "a session that is not there": (_unknown_session, "check the id, or create it first"),
    "a request without a format": (_no_format, "pass format= to create()"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("mistake", SESSION_MISTAKES)
async def test_likely_mistake_with_a_session_is_answered_with_its_cure(mistake: str) -> None:
    do, cure = SESSION_MISTAKES[mistake]
    async with SessionService(MemoryStore()) as sessions:
        with pytest.raises(HoldfastError) as raised:
            await do(sessions, await sessions.create())
    assert cure in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.anyio
async def test_folder_for_a_file_and_file_for_a_folder_name_the_other_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for store, cure in (
        (SQLiteStore(tmp_path), "is a folder: name a file in it, or use JSONLStore"),
        (SQLiteStore(tmp_path / "missing" / "a.db"), "create it first"),
        (JSONLStore(tmp_path / "notes.txt"), "is a file: name a folder for the sessions, or use SQLiteStore"),
    ):
        async with SessionService(store) as sessions:
            with pytest.raises(HoldfastError) as raised:
                await sessions.create()
        assert cure in str(raised.value)


@pytest.mark.anyio
async def test_address_stands_for_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("agent.db", tmp_path / "agent.db", "sqlite:///agent.db"):
        async with SessionService(address) as sessions:
            await sessions.create()
    async with SessionService(SQLiteStore("agent.db")) as sessions:
        assert len(await sessions.store.sessions()) == 3


@pytest.mark.anyio
async def test_numbers_of_numpy_are_numbers() -> None:
    assert compact([USER], budget=np.int64(9), target=np.int32(5)).outcome == "not_needed"
    assert len(await Keeper(window=np.int64(8_000)).prepare_step([USER])) == 1
    async with SessionService(MemoryStore(), window=np.int64(8_000)) as sessions:
        session = await sessions.create()
        await sessions.append(session.id, [USER, {"role": "assistant", "content": "Yes?"}, USER])
        result = await sessions.compact(session.id, TurnCount(np.int32(1)), SlidingWindow(np.int64(1)))
        assert result.outcome == "compacted"
        assert (await sessions.explain(session.id, (await sessions.events(session.id))[-1].id)).agrees
