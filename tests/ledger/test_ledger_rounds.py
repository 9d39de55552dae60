"""Ledgers merge carried notes with newly archived messages, without reading the history again."""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_helpers import Messages, assistant, filler, page_of, section, tool_use, user

import histories
from holdfast import KeepLedger, MemoryStore, SessionService, compact
from holdfast.ledger.headings import TASK, USER_MESSAGES
from holdfast.triggers import always

TARGET = 1_500
SECRET = "tide_key_osterhaven_4711"


def rounds(count: int) -> list[Messages]:
    """Work that is compacted repeatedly; only the first round contains the key."""
    first = [
        user("Mend the tides, one berth after the other."),
        *tool_use("key", "read", f'KEY = "{SECRET}"\n', path="/srv/keys.py"),
        *tool_use("use", "check", "ok", key=SECRET),
    ]
    parts = [
        [*filler(20, 100 * at), assistant(f"Berth K{at} is done."), user(f"Then berth K{at + 1}.")]
        for at in range(count)
    ]
    return [first + parts[0], *parts[1:]]


def unnumbered(page: str) -> str:
    """Removes citations: compaction events have numbers too, so those in a session differ."""
    return re.sub(r"\[[\d,]+\]", "[…]", page)


def test_later_request_is_on_the_page_only_where_no_message_shows_it() -> None:
    asked = [f"Then look after berth K{number} of the north pier." for number in range(8)]
    turns = [message for text in asked for message in (user(text), *filler(2, len(text)), assistant("It is done."))]
    kept = list(compact([user("Sound the basin."), *turns], budget=2 * TARGET, target=TARGET).messages)
    shown = [str(message["content"]) for message in kept if message["role"] == "user"][1:]
    listed = section(page_of(kept), USER_MESSAGES)
    assert shown and listed and all(any(text in line for line in listed) != (text in shown) for text in asked)


@pytest.mark.anyio
async def test_notes_are_equal_from_history_result_and_session() -> None:
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


def test_name_from_first_round_is_shown_in_tenth() -> None:
    before, shown = None, list[dict[str, Any]]()
    for part in rounds(10):
        result = compact(shown + part, budget=2 * TARGET, target=TARGET, previous=before)
        before, shown = result.checkpoint, list(result.messages)
    assert result.round == 10
    assert SECRET in page_of(shown)
    assert "keys.py" in page_of(shown)


def test_request_still_visible_is_not_repeated_as_task() -> None:
    ask = user("Mend all the tides, and do not ask me anything.")
    first = compact([ask, *filler(20)], budget=2 * TARGET, target=TARGET)
    second = compact([*first.messages, *filler(20, 100)], budget=2 * TARGET, target=TARGET, previous=first.checkpoint)
    assert ask in second.messages
    assert TASK not in page_of(list(second.messages))
    later = [*second.messages, assistant("Done."), user("Good. And now?"), *filler(20, 200)]
    third = compact(later, budget=2 * TARGET, target=TARGET, previous=second.checkpoint)
    assert section(page_of(list(third.messages)), TASK) == [ask["content"]]


def carried_size(result: Any) -> int:
    return len(msgspec.json.encode(result.checkpoint.carry.ledger))


def bound(target: int) -> int:
    """Size limit of a carried ledger in bytes of JSON."""
    return 150 * target + 60_000


def many(kind: str, count: int) -> Messages:
    chance = random.Random(4)

    def word() -> str:
        return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=12))

    if kind == "messages":
        return [make(f"{word()} " * 400) for _ in range(count) for make in (user, assistant)]
    if kind == "files":
        made = (tool_use(word(), "read", word(), path=f"/{'deep/' * 150}{word()}.py") for _ in range(4 * count))
    elif kind == "commands":
        made = (tool_use(word(), "run", "ok", command=f"{word()} " * 24) for _ in range(4 * count))
    elif kind == "scripts":
        made = (tool_use(word(), "run", f"{word()}_{word()}\n" * 9, command=f"{word()}\n" * 900) for _ in range(count))
    elif kind == "steps":
        made = (tool_use(word(), "plan", "ok", plan=[{"step": f"{word()} " * 90}] * 900) for _ in range(3))
    elif kind == "errors":
        made = (
            tool_use(word(), "run", "\n".join(f"error: {word()} {word()}" for _ in range(90))) for _ in range(count)
        )
    else:
        made = (tool_use(word(), "run", "\n".join(f"x{n:02}_{word()[:6]}" for n in range(300))) for _ in range(count))
    return [message for step in made for message in step]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", [800, 4_000])
@pytest.mark.parametrize("kind", ["messages", "files", "commands", "scripts", "steps", "errors", "lines"])
def test_carried_ledger_is_bounded_by_target(kind: str, target: int) -> None:
    result = compact([user("Go."), *many(kind, 120), user("And?")], budget=2 * target, target=target)
    assert result.outcome == "compacted"
    assert carried_size(result) <= bound(target)


@given(messages=histories.wire("openai-chat"), target=st.integers(200, 2_000))
@settings(max_examples=min(60, settings().max_examples))
def test_carried_ledger_is_bounded_for_random_histories(messages: Messages, target: int) -> None:
    options: dict[str, Any] = {"budget": 10**6, "estimator": "chars/4", "format": "openai-chat", "trigger": always}
    result = compact(messages, target=target, **options)
    if result.checkpoint is not None and result.checkpoint.carry.ledger is not None:
        assert carried_size(result) <= bound(target)


def test_edits_and_runs_are_counted_once_without_the_checkpoint() -> None:
    """A page counts what the messages that stay did, too; a later round without the checkpoint reads both."""
    shown: Messages = [user("Mend it."), *filler(20)]
    for at in range(3):
        shown += tool_use(f"e{at}", "Edit", "updated", file_path="/w/tide.py", old_string=f"a{at}", new_string=f"b{at}")
        shown += tool_use(f"r{at}", "Bash", "passed", command="make check")
    for at in range(4):
        shown = list(compact([*shown, *filler(2, 100 * (at + 1))], budget=TARGET, target=TARGET).messages)
        assert "tide.py (edited 3×)" in page_of(shown)
        assert "make check" in str(shown[1:]) or "make check  (3×)" in page_of(shown)
    shown += tool_use("e3", "Edit", "updated", file_path="/w/tide.py", old_string="a3", new_string="b3")
    shown = list(compact([*shown, *filler(9, 900)], budget=TARGET, target=TARGET).messages)
    assert "tide.py (edited 4×)" in page_of(shown)


def test_edit_whose_result_comes_after_the_compaction_is_counted() -> None:
    call, late = tool_use("e", "Edit", "updated", file_path="/w/tide.py", old_string="a", new_string="b")
    first = compact([user("Mend it."), *filler(20), call], budget=TARGET, target=TARGET)
    for previous in (first.checkpoint, None):
        more = [*first.messages, late, assistant("Done."), user("Go on."), *filler(20, 100)]
        again = compact(more, budget=TARGET, target=TARGET, previous=previous)
        assert "tide.py (edited 1×)" in page_of(list(again.messages))


def test_numbers_are_the_same_with_and_without_the_checkpoint_of_a_round_that_archived_nothing() -> None:
    """The note that explains the cut marks is no message of the history."""
    table = "\n".join(f"row {at} of the table" for at in range(60))
    looks = [one for at in range(6) for one in tool_use(f"l{at}", "lookup", table, key=at)]
    first = compact([user("Build."), *looks], budget=TARGET, target=TARGET)
    assert first.removed == 0 and len(first.messages) == 14
    pages = []
    for previous in (first.checkpoint, None):
        more = compact([*first.messages, *filler(20)], budget=TARGET, target=TARGET, previous=previous)
        pages.append(page_of(list(more.messages)))
    assert pages[0] == pages[1] and "Counts reach to [53]" in pages[0]
