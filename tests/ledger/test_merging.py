"""Ledgers merge: what was carried and what is newly archived, without reading the history again."""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_story import Messages, noise, page_of, said, section, used, user

import histories
from holdfast import KeepLedger, MemoryStore, SessionService, always, compact
from holdfast.ledger.headings import TASK

TARGET = 1_500
SECRET = "tide_key_osterhaven_4711"


def rounds(count: int) -> list[Messages]:
    """Work that is compacted again and again; only the first round tells the key, and it is used in each."""
    first = [
        user("Mend the tides, one berth after the other."),
        *used("key", "read", f'KEY = "{SECRET}"\n', path="/srv/keys.py"),
        *used("use", "check", "ok", key=SECRET),
    ]
    parts = [
        [*noise(20, 100 * at), said(f"Berth K{at} is done."), user(f"Then berth K{at + 1}.")] for at in range(count)
    ]
    return [first + parts[0], *parts[1:]]


def unnumbered(page: str) -> str:
    """Events of compactions have numbers too, so that those in a session run ahead."""
    return re.sub(r"\[[\d,]+\]", "[…]", page)


@pytest.mark.anyio
async def test_by_history_by_result_and_in_a_session_the_notes_are_the_same() -> None:
    history: Messages = []
    shown: Messages = []
    before: Any = None
    async with SessionService(MemoryStore()) as sessions:
        await sessions.create(id="s", format="openai-chat")
        for part in rounds(4):
            history += part
            options: dict[str, Any] = {"budget": 2 * TARGET, "target": TARGET, "format": "openai-chat"}
            by_history = compact(history, previous=before, **options)
            by_result = compact(shown + part, previous=before, **options)
            assert by_result.messages == by_history.messages
            before, shown = by_result.checkpoint, list(by_result.messages)
            await sessions.append("s", part)
            await sessions.compact("s", always, KeepLedger(TARGET))
            kept = list(await sessions.context("s"))
            assert unnumbered(page_of(kept)) == unnumbered(page_of(shown))


def test_what_round_one_carried_is_still_shown_in_round_ten() -> None:
    before, shown = None, list[dict[str, Any]]()
    for part in rounds(10):
        result = compact(shown + part, budget=2 * TARGET, target=TARGET, previous=before)
        before, shown = result.checkpoint, list(result.messages)
    assert result.round == 10
    assert SECRET in page_of(shown)
    assert "keys.py" in page_of(shown)


def test_a_request_that_still_stands_there_is_not_told_again() -> None:
    ask = user("Mend all the tides, and do not ask me anything.")
    first = compact([ask, *noise(20)], budget=2 * TARGET, target=TARGET)
    second = compact([*first.messages, *noise(20, 100)], budget=2 * TARGET, target=TARGET, previous=first.checkpoint)
    assert ask in second.messages
    assert TASK not in page_of(list(second.messages))
    later = [*second.messages, said("Done."), user("Good. And now?"), *noise(20, 200)]
    third = compact(later, budget=2 * TARGET, target=TARGET, previous=second.checkpoint)
    assert section(page_of(list(third.messages)), TASK) == [ask["content"]]


def carried_size(result: Any) -> int:
    return len(msgspec.json.encode(result.checkpoint.carry.ledger))


def bound(target: int) -> int:
    """What a carried ledger may take, in bytes of JSON: so much for each token of the target, and a little."""
    return 150 * target + 60_000


def many(kind: str, count: int) -> Messages:
    chance = random.Random(4)

    def word() -> str:
        return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=12))

    if kind == "messages":
        return [make(f"{word()} " * 400) for _ in range(count) for make in (user, said)]
    if kind == "files":
        made = (used(word(), "read", word(), path=f"/{'deep/' * 150}{word()}.py") for _ in range(4 * count))
    elif kind == "commands":
        made = (used(word(), "run", "ok", command=f"{word()} " * 24) for _ in range(4 * count))
    elif kind == "scripts":
        made = (used(word(), "run", f"{word()}_{word()}\n" * 9, command=f"{word()}\n" * 900) for _ in range(count))
    elif kind == "steps":
        made = (used(word(), "plan", "ok", plan=[{"step": f"{word()} " * 90}] * 900) for _ in range(3))
    elif kind == "errors":
        made = (used(word(), "run", "\n".join(f"error: {word()} {word()}" for _ in range(90))) for _ in range(count))
    else:
        made = (used(word(), "run", "\n".join(f"x{n:02}_{word()[:6]}" for n in range(300))) for _ in range(count))
    return [message for step in made for message in step]


@pytest.mark.parametrize("target", [800, 4_000])
@pytest.mark.parametrize("kind", ["messages", "files", "commands", "scripts", "steps", "errors", "lines"])
def test_what_is_carried_is_bounded_by_the_target_whatever_the_history(kind: str, target: int) -> None:
    result = compact([user("Go."), *many(kind, 120), user("And?")], budget=2 * target, target=target)
    assert result.outcome == "compacted"
    assert carried_size(result) <= bound(target)


@given(messages=histories.wire("openai-chat"), target=st.integers(200, 2_000))
@settings(max_examples=min(60, settings().max_examples))
def test_on_any_history_too(messages: Messages, target: int) -> None:
    options: dict[str, Any] = {"budget": 10**6, "estimator": "chars/4", "format": "openai-chat", "trigger": always}
    result = compact(messages, target=target, **options)
    if result.checkpoint is not None and result.checkpoint.carry.ledger is not None:
        assert carried_size(result) <= bound(target)
