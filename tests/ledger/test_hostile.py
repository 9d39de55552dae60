"""Sessions that nobody would wish for, at a small size; `python -m benchmarks --only hostile` has them whole."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from ledger_story import Messages, noise, page_of, said, used, user

from holdfast import check, compact
from holdfast.ledger import Notebook, bounds
from holdfast.messages import Message, Text, ToolCall

PART = 50
MEGA = 1_000_000 // PART
TAGS = "\n".join(f"<tag{at}> \\{{{at}}}" for at in range(400))


def session(result: str, **arguments: Any) -> Messages:
    return [user("Please sort this out."), *used("c", "run", result, **arguments), said("Done."), user("And now?")]


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner, "b": [inner]} if levels < 12 else {"a": inner}
    return inner


SESSIONS: dict[str, Messages] = {
    "one huge result": session("the parser reads item_{} at 12.5 each day\n" * MEGA),
    "many tiny messages": [make(f"ok {at}") for at in range(MEGA // 4) for make in (user, said)] + [user("ok")],
    "no newline": session("a word or item_9 " * (10 * MEGA // 17)),
    "no space": session("x" * (10 * MEGA)),
    "only emoji": session("👩‍👩‍👧‍👦🇺🇳👍🏽" * MEGA),
    "only base64": session("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * (MEGA // 4)),
    "only digits": session("0123456789" * MEGA),
    "one line again and again": session("the same line again, number nine\n" * MEGA),
    "only whitespace": [user(" \n\t" * 4_000), said("\n" * 4_000), user("\u2003" * 4_000), *noise(60), user(" ")],
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


@pytest.mark.parametrize("name", SESSIONS)
def test_it_is_compacted_into_something_valid_that_fits(name: str) -> None:
    result = compact(SESSIONS[name], budget=8_000)
    assert result.outcome == "compacted"
    assert result.tokens_after <= 4_000
    assert check(result.messages, "openai-chat") == []
    assert SESSIONS[name][-1] == result.messages[-1]
    page_of(list(result.messages))


def test_a_notebook_holds_no_more_than_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LINES", "NAMES", "SAID", "SUBJECTS"):
        monkeypatch.setattr(bounds, name, 100)
    notebook = Notebook()
    said_so = [Message("user", (Text(f"name_{at} is here\nand so is other_{at}"),)) for at in range(2_000)]
    notebook.read(said_so, range(1, 2_001))
    assert len(notebook.lines) <= 202
    assert len(notebook.names) <= 404
    assert len(notebook.users) <= 201
    assert notebook.users[0].place == 1
    assert notebook.users[-1].place == 2_000
    assert "and so is other_1999" in notebook.lines


def test_memory_grows_with_what_is_scanned_not_with_what_is_there() -> None:
    def peak(times: int) -> int:
        messages = session("worker reads item_9 at noon\n" * times)
        tracemalloc.start()
        compact(messages, budget=8_000, estimator=lambda text: len(text) // 4)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(200_000) < 1.5 * peak(50_000)


def test_the_arguments_of_a_call_may_be_anything() -> None:
    for given in ("", "null", "[1, 2]", '"text"', "{", '{"path": 3}', '{"command": null}', '{"edits": 5, "path": "a"}'):
        messages = session(TAGS * 40)
        messages[1]["tool_calls"][0]["function"]["arguments"] = given
        assert compact(messages, budget=8_000).outcome == "compacted"


def test_a_notebook_holds_no_more_files_and_names_than_it_may() -> None:
    notebook = Notebook()
    for at in range(45):
        reads = [ToolCall(f"{at}.{n}", "read", f'{{"path": "/srv/f{at}_{n}.py"}}') for n in range(1_000)]
        names = "\n".join(" ".join(f"n{at}x{line}y{n}a" for n in range(20)) for line in range(300))
        notebook.read([Message("assistant", tuple(reads)), Message("assistant", (Text(names),))], [2 * at, 2 * at + 1])
    assert len(notebook.files) <= 2 * bounds.SUBJECTS and len(notebook.names) <= 2 * bounds.NAMES
