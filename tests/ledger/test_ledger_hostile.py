"""Hostile sessions at a small size; `python -m benchmarks --only hostile` runs them in full size."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from ledger_helpers import Messages, assistant, filler, page_of, tool_use, user

from holdfast import check, compact
from holdfast.ledger import HistoryExtractor, entries
from holdfast.messages import Message, Text, ToolCall

PART = 50
MEGA = 1_000_000 // PART
TAGS = "\n".join(f"<tag{at}> \\{{{at}}}" for at in range(400))


def session(result: str, **arguments: Any) -> Messages:
    return [
        user("Please sort this out."),
        *tool_use("c", "run", result, **arguments),
        assistant("Done."),
        user("And now?"),
    ]


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner, "b": [inner]} if levels < 12 else {"a": inner}
    return inner


SESSIONS: dict[str, Messages] = {
    "one huge result": session("the parser reads item_{} at 12.5 each day\n" * MEGA),
    "many tiny messages": [make(f"ok {at}") for at in range(MEGA // 4) for make in (user, assistant)] + [user("ok")],
    "no newline": session("a word or item_9 " * (10 * MEGA // 17)),
    "no space": session("x" * (10 * MEGA)),
    "only emoji": session("👩‍👩‍👧‍👦🇺🇳👍🏽" * MEGA),
    "only base64": session("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * (MEGA // 4)),
    "only digits": session("0123456789" * MEGA),
    "one line again and again": session("the same line again, number nine\n" * MEGA),
    "only whitespace": [user(" \n\t" * 4_000), assistant("\n" * 4_000), user("\u2003" * 4_000), *filler(60), user(" ")],
    "only line breaks": session("\r\n\x0b\x0c\x1c\x85\u2028\u2029" * MEGA),
    "deep arguments": session(TAGS * 40, **deep(400)),
    "wide and deep arguments": session(TAGS * 40, **deep(10)),
    "a huge command": session(TAGS * 40, command="echo " + "-x 'y' " * MEGA),
    "a huge path": session(TAGS * 40, path="/a" * MEGA),
    "a huge patch": session(TAGS * 40, input="*** Begin Patch\n" + "-old\n+new\n" * MEGA),
    "a huge plan": session(TAGS * 40, plan=[{"step": f"step {at}", "status": "pending"} for at in range(MEGA // 4)]),
    "a huge number": session(TAGS * 40, amount=10**400, ratio=1e308),
    "half characters": session("\ud800 lone \udfff item_{}\n" * (MEGA // 4), path="/a\ud800.py"),
    "null bytes": session("\x00item\x00_9\x00 " * MEGA),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SESSIONS)
def test_hostile_session_compacts_to_valid_context_that_fits(name: str) -> None:
    result = compact(SESSIONS[name], budget=8_000)
    assert result.outcome == "compacted"
    assert result.tokens_after <= 4_000
    assert check(result.messages, "openai-chat") == []
    assert SESSIONS[name][-1] == result.messages[-1]
    page = page_of(list(result.messages))
    if "every message is shown" in page:
        assert "cut mark" in page and len(result.messages) == len(SESSIONS[name]) + 1
        assert str(result.messages[3]["content"]).startswith("[cut: 3]"), "all stays, but the result is shortened"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SESSIONS)
def test_page_of_archived_hostile_session_fits(name: str) -> None:
    *earlier, last = SESSIONS[name]
    result = compact([*earlier, *filler(60), last], budget=8_000)
    assert result.outcome == "compacted"
    assert result.tokens_after <= 4_000
    assert check(result.messages, "openai-chat") == []
    assert last == result.messages[-1]
    assert "no longer shown" in page_of(list(result.messages))


def test_extractor_stays_within_configured_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_LINES", "MAX_NAMES", "MAX_MESSAGES", "MAX_SUBJECTS"):
        monkeypatch.setattr(entries, name, 100)
    history = HistoryExtractor()
    messages = [Message("user", (Text(f"name_{at} is here\nand so is other_{at}"),)) for at in range(2_000)]
    history.read(messages, range(1, 2_001))
    assert len(history.lines) <= 202
    assert len(history.names) <= 404
    assert len(history.users) <= 201
    assert history.users[0].place == 1
    assert history.users[-1].place == 2_000
    assert "and so is other_1999" in history.lines


def test_memory_use_is_bounded_by_scan_limit() -> None:
    def peak(times: int) -> int:
        messages = session("worker reads item_9 at noon\n" * times)
        tracemalloc.start()
        compact(messages, budget=8_000, estimator=lambda text: len(text) // 4)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(200_000) < 1.5 * peak(50_000)


def test_malformed_call_arguments_are_accepted() -> None:
    for given in ("", "null", "[1, 2]", '"text"', "{", '{"path": 3}', '{"command": null}', '{"edits": 5, "path": "a"}'):
        messages = session(TAGS * 40)
        messages[1]["tool_calls"][0]["function"]["arguments"] = given
        assert compact(messages, budget=8_000).outcome == "compacted"


@pytest.mark.thorough
def test_extractor_stays_within_default_bounds_of_files_and_names() -> None:
    history = HistoryExtractor()
    for at in range(45):
        reads = [ToolCall(f"{at}.{n}", "read", f'{{"path": "/srv/f{at}_{n}.py"}}') for n in range(1_000)]
        names = "\n".join(" ".join(f"n{at}x{line}y{n}a" for n in range(20)) for line in range(300))
        history.read([Message("assistant", tuple(reads)), Message("assistant", (Text(names),))], [2 * at, 2 * at + 1])
    assert len(history.files) <= 2 * entries.MAX_SUBJECTS and len(history.names) <= 2 * entries.MAX_NAMES
