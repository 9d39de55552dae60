"""Two conversations to measure with: plain chat, and an agent at work. The same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
_PROSE = (
    "the parser reads each line of file and keeps an index so that later steps need not scan it again "
    "error expected token found function returns value where test fails because path is missing schema "
    "migration adds column user asks whether cache holds after restart and we answer with a short plan"
)
_WORDS = _PROSE.split()


def chat(count: int) -> list[Json]:
    """The user and the assistant in turns, in plain text."""
    chance = random.Random(1)
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": _text(chance, 8, 80)} for place in range(count)]


def agent(count: int) -> list[Json]:
    """A request, a few rounds of one or two tool calls with their results, an answer; again and again."""
    chance = random.Random(2)
    out: list[Json] = []
    while len(out) < count:
        out += _task(chance, len(out))
    return out[:count] if out[count - 1]["role"] != "tool" else [*out[: count - 1], _said("assistant", chance)]


def _task(chance: random.Random, start: int) -> Iterator[Json]:
    yield _said("user", chance)
    for step in range(chance.randint(1, 4)):
        names = [f"call_{start}_{step}_{place}" for place in range(chance.randint(1, 2))]
        yield {"role": "assistant", "content": None, "tool_calls": [_call(chance, name) for name in names]}
        for name in names:
            yield {"role": "tool", "tool_call_id": name, "content": _text(chance, 20, 300)}
    yield _said("assistant", chance)


def _said(role: str, chance: random.Random) -> Json:
    return {"role": role, "content": _text(chance, 8, 60)}


def _call(chance: random.Random, name: str) -> Json:
    arguments = {"path": f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}.py", "query": _text(chance, 3, 12)}
    function = {"name": chance.choice(("read_file", "search", "run")), "arguments": json.dumps(arguments)}
    return {"id": name, "type": "function", "function": function}


def _text(chance: random.Random, least: int, most: int) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randint(least, most)))


def for_langchain(messages: list[Json]) -> list[Any]:
    """The same conversation as LangChain's own objects."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    out: list[Any] = []
    for message in messages:
        content = message["content"] or ""
        if message["role"] == "user":
            out.append(HumanMessage(content))
        elif message["role"] == "tool":
            out.append(ToolMessage(content, tool_call_id=message["tool_call_id"]))
        else:
            calls = [
                {"name": call["function"]["name"], "args": json.loads(call["function"]["arguments"]), "id": call["id"]}
                for call in message.get("tool_calls", ())
            ]
            out.append(AIMessage(content, tool_calls=calls))
    return out
