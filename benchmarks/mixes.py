"""Two deterministic conversations: plain chat, and an agent with tools."""

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
    """Alternating user and assistant messages in plain text."""
    rng = random.Random(1)
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": _text(rng, 8, 80)} for place in range(count)]


def agent(count: int) -> list[Json]:
    """Repeats: a request, a few rounds of one or two tool calls with results, an answer."""
    rng = random.Random(2)
    out: list[Json] = []
    while len(out) < count:
        out += _task(rng, len(out))
    return out[:count] if out[count - 1]["role"] != "tool" else [*out[: count - 1], _message("assistant", rng)]


def _task(rng: random.Random, start: int) -> Iterator[Json]:
    yield _message("user", rng)
    for step in range(rng.randint(1, 4)):
        names = [f"call_{start}_{step}_{place}" for place in range(rng.randint(1, 2))]
        yield {"role": "assistant", "content": None, "tool_calls": [_call(rng, name) for name in names]}
        for name in names:
            yield {"role": "tool", "tool_call_id": name, "content": _text(rng, 20, 300)}
    yield _message("assistant", rng)


def _message(role: str, rng: random.Random) -> Json:
    return {"role": role, "content": _text(rng, 8, 60)}


def _call(rng: random.Random, name: str) -> Json:
    arguments = {"path": f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py", "query": _text(rng, 3, 12)}
    function = {"name": rng.choice(("read_file", "search", "run")), "arguments": json.dumps(arguments)}
    return {"id": name, "type": "function", "function": function}


def _text(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(least, most)))


def for_langchain(messages: list[Json]) -> list[Any]:
    """The same conversation as LangChain message objects."""
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
