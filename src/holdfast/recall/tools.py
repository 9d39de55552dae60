"""Recall as tools of an agent: definitions for each provider, and bounded, readable results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec

from ..context.references import READ_TOOL, reference
from ..errors import HoldfastError, InvalidInput, InvalidLimit
from ..messages import Json, Media, Message, Text, Tool, ToolResult, decode_one, encode_all, encode_tools
from ..messages.json_text import decodable
from ..messages.sdk import dump
from ..tokens import count_tokens
from .passage import MIN_PASSAGE_TOKENS, TokenCounter, elide_middle, hit_line, short_heading, truncate_to_tokens
from .search import ROLES, SearchResults, SessionSearch

SEARCH_TOOL, RESTORE_TOOL = "recall_search", "recall_restore"
TOOL_NAMES = (SEARCH_TOOL, READ_TOOL, RESTORE_TOOL)
"""Names of the recall tools."""
SEARCH_PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "Words that must all occur, in any order; parts of words count. Not a question.",
        },
        "role": {"type": "string", "enum": list(ROLES), "description": "Who spoke."},
        "tool": {"type": "string", "description": "Only calls of this tool and their results."},
        "since": {"type": "string", "description": "A date, a time, or an age such as 2h or 3d."},
        "until": {"type": "string", "description": "The same, for the end."},
        "archived": {"type": "boolean", "description": "true: only what is no longer in your context."},
        "limit": {"type": "integer", "description": "How many to list; 10 unless said otherwise."},
        "offset": {"type": "integer", "description": "How many to skip, to see more."},
    },
    "required": ["query"],
}
READ_PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "ref": {
            "type": "string",
            "description": (
                "#123 or, as notes cite it, [123] for one event; #123-#130 for several; #123@4000 to go on from a "
                "character of it."
            ),
        },
    },
    "required": ["ref"],
}
RESTORE_PARAMETERS: Json = {
    "type": "object",
    "properties": {"ref": {"type": "string", "description": "#123 or, as notes cite it, [123]: one message."}},
    "required": ["ref"],
}
MAX_RESTORED_TOKENS = 10_000
"""The largest message that the restore tool puts back into the context."""
_SEARCH_DESCRIPTION = (
    "Search everything that was said and done in this conversation, also what is no longer in your context: "
    "messages, tool calls, tool results. Lists short excerpts with references such as #123."
)
_READ_DESCRIPTION = (
    "Read in full what a reference such as #123, or [123] in notes, points at: an earlier message, tool call or tool "
    "result."
)
_RESTORE_DESCRIPTION = (
    "Put one archived message back into your context, whole and with its images. Use it for what the work ahead needs "
    f"again and again, and {READ_TOOL} for a single look."
)
RECALL_TOOLS = (
    Tool(SEARCH_TOOL, _SEARCH_DESCRIPTION, SEARCH_PARAMETERS),
    Tool(READ_TOOL, _READ_DESCRIPTION, READ_PARAMETERS),
    Tool(RESTORE_TOOL, _RESTORE_DESCRIPTION, RESTORE_PARAMETERS),
)


def tool_definitions(format: str = "openai-chat") -> list[Json]:
    """Returns the recall tools as entries of a request's `tools` in this wire format."""
    return encode_tools(format, RECALL_TOOLS)


def offered_tools(recall: SessionSearch) -> tuple[Tool, ...]:
    """Returns the tools that work here: a temporary copy of a history has nothing to restore into."""
    return tuple(tool for tool in RECALL_TOOLS if recall.can_restore or tool.name != RESTORE_TOOL)


MAX_LISTED = 50
_NOTICE_TOKENS = 60
"""Tokens reserved for the line that gives the next offset or reference."""
MIN_ANSWER_TOKENS = MIN_PASSAGE_TOKENS + _NOTICE_TOKENS
"""The smallest `max_tokens` of an answer."""
_ERROR_TOKENS, _QUERY_ECHO_TOKENS = 100, 30
"""Maximum tokens of an error answer, and of a query quoted in an answer."""
_NOT_FILTERS = ("query", "limit", "offset", "max_tokens")
T = TypeVar("T")


class ToolAnswer(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    text: str
    is_error: bool = False
    media: tuple[Media, ...] = ()
    """Images, after the text."""


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
    def filters(self) -> list[str]:
        """Names of the filters that were given."""
        given = msgspec.structs.asdict(self).items()
        return [name for name, value in given if value is not None and name not in _NOT_FILTERS]


class ReadArguments(msgspec.Struct, forbid_unknown_fields=True):
    ref: str | Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


async def run_recall_tool(
    recall: SessionSearch, name: str, arguments: Json | str | None, max_tokens: int
) -> ToolAnswer:
    """Runs a tool by name. A HoldfastError becomes an error answer, so that the model can correct its call."""
    try:
        if name == SEARCH_TOOL:
            return ToolAnswer(await search_answer(recall, parse_arguments(arguments, SearchArguments), max_tokens))
        if name == READ_TOOL:
            return ToolAnswer(await read_answer(recall, parse_arguments(arguments, ReadArguments), max_tokens))
        if name == RESTORE_TOOL and recall.can_restore:
            return ToolAnswer(await restore_answer(recall, parse_arguments(arguments, ReadArguments)))
        names = [tool.name for tool in offered_tools(recall)]
        raise InvalidInput(f"There is no tool {name!r}: use {', '.join(names[:-1])} or {names[-1]}.")
    except HoldfastError as problem:
        return error_answer(recall, problem)


def error_answer(recall: SessionSearch, problem: HoldfastError) -> ToolAnswer:
    """The error as one line of at most `_ERROR_TOKENS` tokens."""
    return ToolAnswer(
        elide_middle(f"Error: {_one_line(str(problem))}", _ERROR_TOKENS, _token_counter(recall)), is_error=True
    )


def _one_line(text: str) -> str:
    """The text on one line, without control characters and lone surrogates."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _token_counter(recall: SessionSearch) -> TokenCounter:
    return partial(count_tokens, recall.estimator)


def _content_budget(max_tokens: int) -> int:
    if max_tokens < MIN_ANSWER_TOKENS:
        raise InvalidLimit(f"max_tokens must be at least {MIN_ANSWER_TOKENS}: raise it, or leave it out.")
    return max_tokens - _NOTICE_TOKENS


def parse_arguments(given: Json | str | None, kind: type[T]) -> T:
    """Converts a model's tool arguments, an object or its JSON, to `kind`; numbers may be strings."""
    try:
        plain = msgspec.json.decode(given or "{}") if isinstance(given, str) else given or {}
        return msgspec.convert(plain, decodable(kind), strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as problem:
        raise InvalidInput(f"The arguments are invalid ({problem}): see the tool's parameters.") from problem


async def search_answer(
    recall: SessionSearch, arguments: SearchArguments, max_tokens: int, session_id: str | None = None
) -> str:
    """Searches and returns the hits as lines of text. Calls of the recall tools themselves are excluded."""
    budget = _content_budget(max_tokens)
    results = await recall.search(
        arguments.query,
        session_id=session_id,
        kind=arguments.kind,
        role=arguments.role,
        tool=arguments.tool,
        exclude_tool=TOOL_NAMES,
        lane=arguments.lane,
        since=arguments.since,
        until=arguments.until,
        archived=arguments.archived,
        limit=min(max(arguments.limit or 10, 1), MAX_LISTED),
        offset=max(0, arguments.offset or 0),
    )
    with_session = session_id is None and recall.session_id is None
    return _format_hits(results, arguments, budget, with_session, _token_counter(recall))


def _format_hits(
    results: SearchResults, arguments: SearchArguments, budget: int, with_session: bool, count: TokenCounter
) -> str:
    offset = max(0, arguments.offset or 0)
    if not results.hits:
        query = repr(elide_middle(_one_line(arguments.query), _QUERY_ECHO_TOKENS, count))
        filters = f" with these filters ({', '.join(arguments.filters)})" if arguments.filters else ""
        if offset:
            return f"No more events contain all of {query}{filters}: search again with an offset below {offset}."
        if filters:
            return f"No event contains all of {query}{filters}. Leave some out, or try fewer words."
        return f"No event contains all of {query}. Try fewer words, or parts of words: every one of them must occur."
    lines: list[str] = []
    for hit in results.hits:
        head = short_heading(hit.event, hit.role, hit.tools, archived=hit.archived)
        line = hit_line(head, hit.snippet, session_id=hit.session_id if with_session else None)
        line = line if lines else truncate_to_tokens(line, budget, count)
        budget -= count(line + "\n")
        if budget < 0 and lines:
            break
        lines.append(line)
    if results.more or len(lines) < len(results.hits):
        lines.append(f"There is more: search again with offset {offset + len(lines)}.")
    return "\n".join(lines)


async def read_answer(
    recall: SessionSearch, arguments: ReadArguments, max_tokens: int, session_id: str | None = None
) -> str:
    """Reads a passage as text, with the reference to continue from where it was truncated."""
    passage = await recall.read(str(arguments.ref), session_id=session_id, max_tokens=_content_budget(max_tokens))
    return passage.text + (f"\n\nThere is more: read {passage.next}" if passage.next else "")


async def restore_answer(recall: SessionSearch, arguments: ReadArguments, session_id: str | None = None) -> str:
    """Restores a message of at most `MAX_RESTORED_TOKENS` tokens; the answer names its copy."""
    event = await recall.find_event(str(arguments.ref), session_id=session_id)
    session = session_id or recall.session_id
    assert session is not None  # find_event requires one
    copy = await recall.sessions.restore_after_results(session, event.id, max_tokens=MAX_RESTORED_TOKENS)
    if copy is None:
        return f"{reference(event)} is restored: its copy follows the results of the open tool calls."
    return f"{reference(event)} is restored: its copy is {reference(copy)}, at the end of the context."


async def answer_tool_call(recall: SessionSearch, call: Any, max_tokens: int) -> Json:
    """Runs a provider's tool call; returns the tool result message in the same wire format."""
    message, format = _decode_call(call)
    requested = message.calls[0]
    answer = await run_recall_tool(recall, requested.name, requested.arguments, max_tokens)
    result = ToolResult(requested.id, (Text(answer.text),), answer.is_error, requested.name, requested.kind)
    return encode_all([message, Message("tool", (result,))], format)[-1]


def _decode_call(call: Any) -> tuple[Message, str]:
    """Wraps a call into an assistant message; returns it with its wire format."""
    payload: Json = dict(call) if isinstance(call, dict) else dump(call) if hasattr(call, "model_dump") else {}
    for fits, format, wrap in _CALL_SHAPES:
        if fits(payload):
            try:
                message = decode_one(wrap(payload), format)
            except (KeyError, TypeError, AttributeError, ValueError):
                break
            if message.calls:
                return message, format
    raise InvalidInput(
        f"This is not a tool call of a known format ({type(call).__name__}): pass one entry of `tool_calls`, a "
        "`function_call` item, a `tool_use` block, a `functionCall` part or a `tool-call` part."
    )


_CALL_SHAPES: tuple[tuple[Callable[[Json], bool], str, Callable[[Json], Json]], ...] = (
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
    (lambda call: "toolName" in call, "ai-sdk", lambda call: {"role": "assistant", "toolCalls": [call]}),
    (
        lambda call: "name" in call and "args" in call,
        "gemini",
        lambda call: {"role": "model", "parts": [{"functionCall": call}]},
    ),
)
