"""A tiny session for the lab's tests: a file is read, an error occurs, and later the file is edited."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.messages import Message, Text, ToolCall, ToolResult, assistant, encode_all, user
from holdfast.transcripts import PastCompaction, Transcript, TranscriptEntry

_numbers = iter(range(10**9))


def call(tool: str, **arguments: Any) -> Message:
    """An assistant message with one tool call."""
    return Message("assistant", (ToolCall(f"toolu_{next(_numbers)}", tool, arguments),))


def result(of: Message, text: str) -> Message:
    return Message("tool", (ToolResult(of.calls[0].id, (Text(text),)),))


def used(tool: str, answer: str, **arguments: Any) -> list[Message]:
    """A call and its result."""
    made = call(tool, **arguments)
    return [made, result(made, answer)]


SOURCE = "1→def load_tides(path):\n2→    table = parse_table(path)\n3→    return table.high_water"
BEFORE = [
    user("Please make the harbour schedule respect tomorrow's closing hours"),
    *used("Read", SOURCE, file_path="/harbor/tides.py"),
    *used("Bash", "FAILED test_tides.py::test_high - KeyError: 'noon'\nall else is well", command="pytest -q tests"),
    *used("Write", "written", file_path="/harbor/notes.md", content="remember berth_nine"),
]
AFTER = [
    *used(
        "Edit",
        "done",
        file_path="/harbor/tides.py",
        old_string="    table = parse_table(path)",
        new_string="x = new_one()",
    ),
    *used("Bash", "ok", command="pytest -q tests"),
]


def long_history(rounds: int = 60) -> list[Message]:
    """Many rounds with their own names, long enough to cut; later rounds edit files read earlier."""
    found: list[Message] = []
    for n in range(rounds):
        code = "\n".join(f"    value_{n}_{k} = compute_{k}(berth_{n}, tide=levels[{k}])" for k in range(24))
        found.append(user(f"Round {n}: look at the moorings of berth number {n} again"))
        found += used("Read", code, file_path=f"/harbor/berth_{n}.py")
        if n > 4:
            old = f"    value_{n - 4}_3 = compute_3(berth_{n - 4}, tide=levels[3])"
            found += used("Edit", "done", file_path=f"/harbor/berth_{n - 4}.py", old_string=old, new_string="pass")
        found.append(assistant(f"Berth {n} is done"))
    return found


def transcript(messages: Sequence[Message], compactions: tuple[PastCompaction, ...] = ()) -> Transcript:
    """A transcript of these messages, one payload per message."""
    payloads = encode_all(list(messages), "openai-chat")
    assert len(payloads) == len(messages)
    return Transcript("claude-code", "openai-chat", tuple(map(TranscriptEntry, payloads)), compactions, id="a-session")


def write_session(path: Path, rounds: int = 60) -> Path:
    """Writes the long history as a plain file of messages."""
    path.write_text(json.dumps(encode_all(long_history(rounds), "openai-chat")))
    return path
