"""Messages of an exact size, and requests about them, by the chars/4 rule (L1): 2 + ceil(characters / 4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.context import Request, View
from holdfast.messages import decode_all
from holdfast.tokens import estimator_for
from holdfast.tokens.estimators import prompt_overhead

Json = dict[str, Any]
Messages = list[Json]
ROLE = 2
"""What a message costs beyond its text."""


def letters(tokens: int) -> str:
    """A text of so many tokens."""
    return "x" * (4 * tokens)


def user(tokens: int, text: str = "") -> Json:
    """A user message of so many tokens, which may start with some words."""
    return {"role": "user", "content": text.ljust(4 * (tokens - ROLE), ".")}


def assistant(tokens: int) -> Json:
    return {"role": "assistant", "content": letters(tokens - ROLE)}


def calls(*ids: str, name: str = "read", arguments: str = "{}") -> Json:
    """An assistant message with these calls: 2, and 2 for each (`read` and `{}`)."""
    made = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(id: str, tokens: int) -> Json:
    """A tool message of so many tokens: its text counts as a JSON string, with two quotation marks."""
    return {"role": "tool", "tool_call_id": id, "content": "x" * (4 * (tokens - ROLE) - 2)}


def round_of(id: str, tokens: int) -> Messages:
    """A call and its result of so many tokens."""
    return [calls(id), result(id, tokens)]


def request_for(
    messages: Iterable[Any],
    *,
    estimator: Any = "chars/4",
    format: str | None = None,
    system: Any = None,
    budget: int | None = None,
    target: int | None = None,
) -> Request:
    """The request that a trigger or a strategy would be asked about these messages."""
    decoded, name = decode_all(messages, format)
    view = View(estimator_for(estimator), format=name, prompt_overhead=prompt_overhead(system, None))
    view.load(decoded, [str(place) for place in range(len(decoded))])
    return Request(view, budget=budget, target=target)
