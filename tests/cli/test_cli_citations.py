"""Citations in notes are readable with `holdfast read`, also after compactions and unanswered calls (H1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import LONG, Record, Run, claude_code, conversation, loaded, pi, write_json, write_lines

CITED = re.compile(r"^\[([\d,]+)\] (Order \d+:)", re.MULTILINE)


def orders(first: int, last: int) -> list[tuple[str, str]]:
    """Role and text of the messages for these orders."""
    return [
        order
        for number in range(first, last)
        for order in (("user", f"Order {number}: paint berth {number}."), ("assistant", f"Painted {number}. {LONG}"))
    ]


def _claude_code() -> list[Record]:
    lines = claude_code()
    pattern = {role: next(line for line in lines if line["type"] == role) for role in ("user", "assistant")}
    for place, (role, text) in enumerate(orders(0, 60)):
        message = pattern[role]["message"] | {"content": [{"type": "text", "text": text}], "id": f"m-{place}"}
        lines.append(pattern[role] | {"uuid": f"order-{place}", "message": message})
    return lines


def _codex() -> list[Record]:
    def item(role: str, text: str) -> Record:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    def message(role: str, text: str) -> Record:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": item(role, text)}

    before = orders(0, 20)
    shown = [item(role, text) for role, text in before if role == "user"]
    compacted = {"message": "Twenty are painted.", "replacement_history": [*shown, item("user", "Twenty are painted.")]}
    return [
        {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s-2", "cwd": "/x"}},
        *(message(role, text) for role, text in before),
        {"timestamp": "2026-01-01T00:00:00Z", "type": "compacted", "payload": compacted},
        *(message(role, text) for role, text in orders(20, 60)),
    ]


def _pi() -> list[Record]:
    lines = pi()
    for role, text in orders(0, 60):
        lines.append(
            {
                "type": "message",
                "timestamp": "2026-01-01T00:00:00Z",
                "message": {"role": role, "content": [{"type": "text", "text": text}], "stopReason": "stop"},
            }
        )
    return lines


def _unanswered() -> list[Record]:
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        message
        for place, (role, text) in enumerate(orders(0, 60))
        for message in (
            {"role": role, "content": text},
            *([{"role": "assistant", "tool_calls": [call | {"id": f"c{place}"}]}] if role == "user" else []),
        )
    ]


def _lead_back(run: Run, file: Path, *options: Any) -> None:
    facts = loaded(run("compact", file, "--now", "--budget", "6k", "--json", *options).stdout)
    assert facts["outcome"] == "compacted"
    cited = CITED.findall("\n".join(_texts(facts["messages"])))
    assert len(cited) > 5
    for number, text in cited[::3]:
        assert text in run("read", f"[{number}]", file).stdout, (number, text)


def _texts(value: Any) -> list[str]:
    """All texts in a value of any format."""
    if isinstance(value, dict | list):
        return [text for item in (value.values() if isinstance(value, dict) else value) for text in _texts(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [(), ("--whole",)], ids=["context", "whole"])
@pytest.mark.parametrize("records", [_claude_code, _codex, _pi, _unanswered])
def test_h1_citations_in_notes_are_readable_in_the_file(
    records: Callable[[], list[Record]], options: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    _lead_back(run, write_lines(tmp_path / "session.jsonl", records()), *options)


def test_h1_summary_of_another_tool_is_readable(run: Run, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "session.jsonl", pi())
    assert "They greeted." in run("read", "3", file).stdout


@pytest.mark.parametrize("options", [(), ("--whole",)], ids=["context", "whole"])
def test_h1_citations_are_readable_in_a_compacted_store(
    options: tuple[str, ...], run: Run, make_store: Callable[..., Path], tmp_path: Path
) -> None:
    store = make_store("agent.db")
    facts = loaded(run("compact", store, "--now", "--budget", "3k", "--json", *options).stdout)
    cited = re.findall(r"^\[([\d,]+)\] (Question \d+:)", facts["messages"][0]["content"], re.MULTILINE)
    assert len(cited) > 5
    for number, text in cited:
        assert text in run("read", f"[{number}]", store).stdout


def test_citation_numbers_equal_numbers_after_import(run: Run, tmp_path: Path) -> None:
    file, store = write_lines(tmp_path / "session.jsonl", _codex()), tmp_path / "agent.db"
    assert run("import", file, "--store", store).exit_code == 0
    for query in ("Order 7:", "Order 33:"):
        found = [
            {hit["ref"] for hit in loaded(run("search", query, name, "--kind", "message", "--json").stdout)["hits"]}
            for name in (file, store)
        ]
        assert found[0] == found[1] != set()


def test_citation_numbers_in_plain_file_are_positions(run: Run, tmp_path: Path) -> None:
    file = write_json(tmp_path / "chat.json", conversation("openai-chat", 8))
    assert json.dumps("Question 1: what about berth 1?") in json.dumps(run("read", "5", file).stdout.splitlines())
