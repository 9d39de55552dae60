"""Running a tool call of an agent: a bounded answer, and every error as one that can be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec

from ..errors import HoldfastError, InvalidInput, InvalidLimit
from ..messages import Json, Message, Text, ToolResult, decode_one, encode_all
from ..messages.sdk import dump
from ..tokens import tokens_in
from .finding import Finder, Found
from .passage import SMALLEST, Count, fitting, shortened
from .rendering import hit_line, short_heading
from .tools import READ, SEARCH, TOOL_NAMES

MOST_LISTED = 50
_NOTICE = 60
"""Tokens left for the line that says how to go on."""
LEAST = SMALLEST + _NOTICE
"""Tokens that an answer may have, at least."""
_SENTENCE, _ECHO = 100, 30
"""Tokens of a refusal, and of what is repeated from a query."""
_NO_CONDITIONS = ("query", "limit", "offset", "max_tokens")

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True):
    """What a tool call comes to."""

    text: str
    is_error: bool = False


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    query: str
    role: str | None = None
    tool: str | None = None
    since: str | None = None
    until: str | None = None
    archived: bool | None = None
    limit: int | None = None
    offset: int | None = None
    kind: str | None = None
    lane: str | None = None

    @property
    def conditions(self) -> list[str]:
        """What narrows the search beside its words, by name."""
        given = msgspec.structs.asdict(self).items()
        return [name for name, value in given if value is not None and name not in _NO_CONDITIONS]


class ReadArguments(msgspec.Struct, forbid_unknown_fields=True):
    ref: str | Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


async def run(recall: Finder, name: str, arguments: Json | str | None, max_tokens: int) -> Answer:
    """Run a tool by name. What Holdfast refuses is an answer too: the model can do something about it."""
    try:
        if name == SEARCH:
            return Answer(await search(recall, read_arguments(arguments, SearchArguments), max_tokens))
        if name == READ:
            return Answer(await read(recall, read_arguments(arguments, ReadArguments), max_tokens))
        raise InvalidInput(f"There is no tool {name!r} here: use {' or '.join(TOOL_NAMES)}.")
    except HoldfastError as problem:
        return refusal(recall, problem)


def refusal(recall: Finder, problem: HoldfastError) -> Answer:
    """One sentence, however long what it repeats was."""
    return Answer(shortened(f"Error: {_one_line(str(problem))}", _SENTENCE, _count(recall)), is_error=True)


def _one_line(text: str) -> str:
    """Without line ends and control characters, and without half characters, which no answer can carry."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _count(recall: Finder) -> Count:
    return partial(tokens_in, recall.estimator)


def _room(max_tokens: int) -> int:
    if max_tokens < LEAST:
        raise InvalidLimit(f"max_tokens must be at least {LEAST}: give more, or leave it out.")
    return max_tokens - _NOTICE


def read_arguments(given: Json | str | None, kind: type[T]) -> T:
    """Arguments as a model wrote them: an object or its JSON, with numbers perhaps as text."""
    try:
        plain = msgspec.json.decode(given or "{}") if isinstance(given, str) else given or {}
        return msgspec.convert(plain, kind, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as problem:
        raise InvalidInput(f"The arguments cannot be used ({problem}): see the tool's parameters.") from problem


async def search(recall: Finder, asked: SearchArguments, max_tokens: int, session_id: str | None = None) -> str:
    room = _room(max_tokens)
    found = await recall.search(
        asked.query,
        session_id=session_id,
        kind=asked.kind,
        role=asked.role,
        tool=asked.tool,
        but_tool=TOOL_NAMES,
        lane=asked.lane,
        since=asked.since,
        until=asked.until,
        archived=asked.archived,
        limit=min(max(asked.limit or 10, 1), MOST_LISTED),
        offset=max(0, asked.offset or 0),
    )
    named = session_id is None and recall.session_id is None
    return _listed(found, asked, room, named, _count(recall))


def _listed(found: Found, asked: SearchArguments, room: int, named: bool, count: Count) -> str:
    offset = max(0, asked.offset or 0)
    if not found.hits:
        sought = repr(shortened(_one_line(asked.query), _ECHO, count))
        under = f" under these conditions ({', '.join(asked.conditions)})" if asked.conditions else ""
        if offset:
            return f"Nothing more holds all of {sought}{under}: search again with an offset below {offset}."
        if under:
            return f"Nothing holds all of {sought}{under}. Leave some out, or try fewer words."
        return f"Nothing holds all of {sought}. Try fewer words, or parts of words: every one of them must occur."
    lines: list[str] = []
    for hit in found.hits:
        head = short_heading(hit.event, hit.role, hit.tools, archived=hit.archived)
        line = hit_line(head, hit.snippet, session_id=hit.session_id if named else None)
        line = line if lines else fitting(line, room, count)
        room -= count(line + "\n")
        if room < 0 and lines:
            break
        lines.append(line)
    if found.more or len(lines) < len(found.hits):
        lines.append(f"There is more: search again with offset {offset + len(lines)}.")
    return "\n".join(lines)


async def read(recall: Finder, asked: ReadArguments, max_tokens: int, session_id: str | None = None) -> str:
    passage = await recall.read(str(asked.ref), session_id=session_id, max_tokens=_room(max_tokens))
    return passage.text + (f"\n\nThere is more: read {passage.next}" if passage.next else "")


async def answer(recall: Finder, call: Any, max_tokens: int) -> Json:
    """The message that answers a provider's tool call, in the provider's own format."""
    said, format = _said(call)
    asked = said.calls[0]
    made = await run(recall, asked.name, asked.arguments, max_tokens)
    result = ToolResult(asked.id, (Text(made.text),), made.is_error, asked.name, asked.kind)
    return encode_all([said, Message("tool", (result,))], format)[-1]


def _said(call: Any) -> tuple[Message, str]:
    """The call inside a message of the model, and the format that it is written in."""
    payload: Json = dict(call) if isinstance(call, dict) else dump(call) if hasattr(call, "model_dump") else {}
    for fits, format, wrap in _SHAPES:
        if fits(payload):
            try:
                message = decode_one(wrap(payload), format)
            except (KeyError, TypeError, AttributeError, ValueError):
                break
            if message.calls:
                return message, format
    raise InvalidInput(
        f"This is no tool call that can be answered ({type(call).__name__}): hand in one entry of `tool_calls`, a "
        "`function_call` item, a `tool_use` block or a `functionCall` part."
    )


_SHAPES: tuple[tuple[Callable[[Json], bool], str, Callable[[Json], Json]], ...] = (
    (
        lambda call: isinstance(call.get("function"), dict),
        "openai-chat",
        lambda call: {"role": "assistant", "content": None, "tool_calls": [call]},
    ),
    (lambda call: call.get("type") == "function_call", "openai-responses", lambda call: call),
    (
        lambda call: call.get("type") == "tool_use",
        "anthropic",
        lambda call: {"role": "assistant", "content": [call]},
    ),
    (
        lambda call: isinstance(call.get("functionCall"), dict),
        "gemini",
        lambda call: {"role": "model", "parts": [call]},
    ),
    (
        lambda call: "name" in call and "args" in call,
        "gemini",
        lambda call: {"role": "model", "parts": [{"functionCall": call}]},
    ),
)
