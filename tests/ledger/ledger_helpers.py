"""Builders of small sessions, and access to the rendered page."""

from __future__ import annotations

import json
from typing import Any

from holdfast import compact
from holdfast.ledger import PAGE_OPENING

Json = dict[str, Any]
Messages = list[Json]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def tool_use(id: str, tool: str, result: str, **arguments: Any) -> Messages:
    """A tool call and its result."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
    return [call, {"role": "tool", "tool_call_id": id, "content": result}]


def filler(count: int, start: int = 0) -> Messages:
    """Irrelevant steps, each writing a log of its own: their calls are too long for a trail of all of them."""
    text = "nothing happened here, and the watch went on as it had all night long\n"
    steps = [
        tool_use(f"noise{at}", "watch", f"tick {at}", hours=at, log=text * 12) for at in range(start, start + count)
    ]
    return [message for step in steps for message in step]


def page_of(messages: Messages) -> str:
    """The notes among these messages."""
    pages = [message["content"] for message in messages if str(message.get("content")).startswith(PAGE_OPENING)]
    assert len(pages) == 1, pages
    return str(pages[0]).rpartition("\n[holdfast:")[0]


def notes_on(messages: Messages, target: int = 1_500, **options: Any) -> str:
    """The page rendered by a compaction to `target` tokens."""
    return page_of(list(compact(messages, budget=2 * target, target=target, **options).messages))


def section(page: str, title: str) -> list[str]:
    """The lines under a title."""
    lines = page.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith(title)]
    if not starts:
        return []
    rest = lines[starts[0] + 1 :]
    ends = (at for at, line in enumerate(rest) if line.startswith("## "))
    return [line for line in rest[: next(ends, len(rest))] if line]
