"""An MCP server over a store: any MCP client can look into its sessions. Reads only.

The SDK is an extra, imported when a server is made: `pip install 'holdfast[mcp]'`.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import HoldfastError, InvalidInput
from ..events import SessionRecord
from ..messages import Json
from .calls import Answer, ReadArguments, SearchArguments, read, read_arguments, refusal, search
from .conditions import KINDS
from .finding import ANSWER_TOKENS
from .recall import Recall
from .tools import READ_PARAMETERS, SEARCH_PARAMETERS

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

MOST_SESSIONS = 100
_SESSION = {"type": "string", "description": "The id of a session, as `sessions` lists them."}
_TOKENS = {"type": "integer", "description": f"How long the answer may be; {ANSWER_TOKENS} unless said otherwise."}
_MORE = {
    "kind": {"type": "string", "enum": list(KINDS), "description": "The kind of event."},
    "lane": {"type": "string", "description": "The lane of a sub-agent; empty for the root alone."},
}
_SEARCH_SAYS = (
    "Search everything that was said and done in an agent's sessions, also what compaction has taken out of their "
    "context: messages, tool calls, tool results. Lists short excerpts with references such as #123."
)
_READ_SAYS = "Read in full what a reference such as #123 points at in a session."
_SESSIONS_SAYS = "List the sessions of the store, the newest first, with the number of their events."


class _Search(SearchArguments):
    session: str | None = None
    max_tokens: int = ANSWER_TOKENS


class _Read(ReadArguments):
    session: str | None = None
    max_tokens: int = ANSWER_TOKENS


class _Sessions(msgspec.Struct, forbid_unknown_fields=True):
    owner: str | None = None
    limit: int = 20
    offset: int = 0


def must_have_sdk() -> None:
    """Say how to install the SDK where it is missing, or from before version 2."""
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise InvalidInput("The MCP server needs the MCP SDK: pip install 'holdfast[mcp]'.") from None
    if int(found.partition(".")[0]) < 2:
        raise InvalidInput(f"The MCP server needs the MCP SDK 2, not {found}: pip install --upgrade 'holdfast[mcp]'.")


def make_server(recall: Recall) -> Server[Any]:
    """A server whose tools are search, read and, where no session is named, sessions."""
    must_have_sdk()
    from mcp import types
    from mcp.server.lowlevel import Server

    tools = [
        types.Tool(
            name=name,
            description=says,
            input_schema=schema,
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )
        for name, says, schema in _tools(recall)
    ]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await run_tool(recall, params.name, params.arguments)
        text = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[text], is_error=answer.is_error)

    return Server("holdfast", version=version("holdfast"), on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(recall: Recall) -> None:
    """Answer an MCP client on standard input and output until it leaves."""
    server = make_server(recall)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _tools(recall: Recall) -> list[tuple[str, str, Json]]:
    named = {"session": _SESSION} if recall.session_id is None else {}
    found = [
        ("search", _SEARCH_SAYS, _with(SEARCH_PARAMETERS, {**_MORE, **named, "max_tokens": _TOKENS})),
        ("read", _READ_SAYS, _with(READ_PARAMETERS, {**named, "max_tokens": _TOKENS}, list(named))),
    ]
    if named:
        listing = {
            "owner": {"type": "string"},
            "limit": {"type": "integer", "description": "20 unless said otherwise."},
            "offset": {"type": "integer", "description": "How many to skip, to see more."},
        }
        found.append(("sessions", _SESSIONS_SAYS, {"type": "object", "properties": listing}))
    return found


def _with(schema: Json, more: Json, required: list[str] | None = None) -> Json:
    return {
        **schema,
        "properties": {**schema["properties"], **more},
        "required": [*schema["required"], *(required or ())],
    }


async def run_tool(recall: Recall, name: str, arguments: Json | None) -> Answer:
    """Run one of the server's tools; what Holdfast refuses is an answer that says why."""
    try:
        if name == "search":
            sought = read_arguments(arguments, _Search)
            return Answer(await search(recall, sought, sought.max_tokens, _session(recall, sought.session)))
        if name == "read":
            place = read_arguments(arguments, _Read)
            if not (place.session or recall.session_id):
                raise InvalidInput("Name the session that the reference is about as `session`: `sessions` lists them.")
            return Answer(await read(recall, place, place.max_tokens, _session(recall, place.session)))
        if name == "sessions" and recall.session_id is None:
            return Answer(await _sessions(recall, read_arguments(arguments, _Sessions)))
        names = ", ".join(known for known, _, _ in _tools(recall))
        raise InvalidInput(f"There is no tool {name!r} here: use one of {names}.")
    except HoldfastError as problem:
        return refusal(recall, problem)


def _session(recall: Recall, named: str | None) -> str | None:
    """The session that a call names. A server for one session shows no other."""
    if named and recall.session_id not in (None, named):
        raise InvalidInput(f"This server is about session {recall.session_id!r} alone: leave out `session`.")
    return named or None


async def _sessions(recall: Recall, asked: _Sessions) -> str:
    records = await recall.sessions.list(asked.owner)
    first = max(asked.offset, 0)
    shown = records[first : first + min(max(asked.limit, 1), MOST_SESSIONS)]
    lines, end = [*map(_line, shown)], first + len(shown)
    if shown and end < len(records):
        lines.append(f"There are {len(records) - end:,} more: list them with offset {end}.")
    return "\n".join(lines) or (
        f"There are {len(records):,} sessions in all." if records else "There is no session yet."
    )


def _line(record: SessionRecord) -> str:
    about = [f"created {record.created[:16].replace('T', ' ')}", f"{record.version:,} events"]
    about += [f"of {record.owner}"] if record.owner else []
    about += [record.model] if record.model else []
    return f"{record.id}: {', '.join(about)}"
