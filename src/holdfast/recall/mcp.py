"""An MCP server over a store: its tools list, search, read and fork sessions, restore archived messages, and undo.

The SDK is the extra `mcp`, imported when a server is created.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import msgspec

from ..context.events import SessionRecord
from ..errors import HoldfastError, InvalidInput
from ..io.installation import install_command
from ..messages import Json
from ..sessions.history import first_user_line
from ..sessions.session_ids import find_session
from ..summaries.handoff import clip_title
from .recall import Recall
from .search import DEFAULT_MAX_TOKENS, KINDS, SessionSearch
from .tools import (
    READ_PARAMETERS,
    RESTORE_PARAMETERS,
    SEARCH_PARAMETERS,
    ReadArguments,
    SearchArguments,
    ToolAnswer,
    error_answer,
    parse_arguments,
    read_answer,
    restore_answer,
    search_answer,
)

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


MAX_SESSIONS_LISTED = 100
_WRITING_TOOLS = ("restore", "undo", "fork")
_SESSION_PARAMETER = {
    "type": "string",
    "description": "The id of a session, as `sessions` lists them, or its beginning or end.",
}
_TOKENS_PARAMETER = {
    "type": "integer",
    "description": f"How long the answer may be; {DEFAULT_MAX_TOKENS} unless said otherwise.",
}
_EXTRA_FILTERS = {
    "kind": {"type": "string", "enum": list(KINDS), "description": "The kind of event."},
    "lane": {"type": "string", "description": "The lane of a sub-agent; empty for the root alone."},
}
_MCP_SEARCH_DESCRIPTION = (
    "Search everything that was said and done in an agent's sessions, also what compaction has taken out of their "
    "context: messages, tool calls, tool results. Lists short excerpts with references such as #123."
)
_MCP_READ_DESCRIPTION = "Read in full what a reference such as #123 points at in a session."
_MCP_RESTORE_DESCRIPTION = (
    "Put one archived message of a session back into that session's context, as a quoted copy at its end."
)
_MCP_UNDO_DESCRIPTION = "Undo the last compaction of a session: its context is again what it was before."
_MCP_FORK_DESCRIPTION = (
    "Create a session with the events of another up to and including one; its context is the one of that time."
)
_FORK_PARAMETERS = {
    "at": {"type": "string", "description": "The last event to include, such as #12; the newest unless said otherwise."}
}
_MCP_SESSIONS_DESCRIPTION = (
    "List the sessions of the store, the newest first, with their titles and the number of their events."
)


class _McpSearchArguments(SearchArguments):
    session: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS


class _McpReadArguments(ReadArguments):
    session: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS


class _McpRestoreArguments(ReadArguments):
    session: str | None = None


class _McpUndoArguments(msgspec.Struct, forbid_unknown_fields=True):
    session: str | None = None


class _McpForkArguments(msgspec.Struct, forbid_unknown_fields=True):
    session: str | None = None
    at: str | None = None


class _McpSessionsArguments(msgspec.Struct, forbid_unknown_fields=True):
    owner: str | None = None
    limit: int = 20
    offset: int = 0


def require_mcp_sdk() -> None:
    """Raises InvalidInput with the install command if the MCP SDK is missing or older than version 2."""
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise InvalidInput(f"The MCP server needs the MCP SDK: {install_command('mcp')}") from None
    if int(found.partition(".")[0]) < 2:
        raise InvalidInput(f"The MCP server needs the MCP SDK 2, not {found}: {install_command('mcp')}")


def make_server(recall: Recall) -> Server[Any]:
    """Creates a server: search and read; restore, undo and fork where sessions are stored; sessions unless limited."""
    require_mcp_sdk()
    from mcp import types
    from mcp.server.lowlevel import Server

    tools = [
        types.Tool(
            name=name,
            description=description,
            input_schema=schema,
            annotations=types.ToolAnnotations(
                read_only_hint=name not in _WRITING_TOOLS, destructive_hint=False, open_world_hint=False
            ),
        )
        for name, description, schema in _tool_schemas(recall)
    ]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await run_mcp_tool(recall, params.name, params.arguments)
        text = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[text], is_error=answer.is_error)

    return Server("holdfast", version=version("holdfast-context"), on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(recall: Recall) -> None:
    """Serves an MCP client on standard input and output until it disconnects."""
    server = make_server(recall)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _tool_schemas(recall: Recall) -> list[tuple[str, str, Json]]:
    session = {"session": _SESSION_PARAMETER} if recall.session_id is None else {}
    more = {**session, "max_tokens": _TOKENS_PARAMETER}
    schemas = [
        ("search", _MCP_SEARCH_DESCRIPTION, _extend_schema(SEARCH_PARAMETERS, {**_EXTRA_FILTERS, **more})),
        ("read", _MCP_READ_DESCRIPTION, _extend_schema(READ_PARAMETERS, more, list(session))),
    ]
    if recall.can_restore:
        restore = _extend_schema(RESTORE_PARAMETERS, session, list(session))
        schemas.append(("restore", _MCP_RESTORE_DESCRIPTION, restore))
        schemas.append(("undo", _MCP_UNDO_DESCRIPTION, _object_schema(session, list(session))))
        schemas.append(("fork", _MCP_FORK_DESCRIPTION, _object_schema(_FORK_PARAMETERS | session, list(session))))
    if session:
        listing = {
            "owner": {"type": "string"},
            "limit": {"type": "integer", "description": "20 unless said otherwise."},
            "offset": {"type": "integer", "description": "How many to skip, to see more."},
        }
        schemas.append(("sessions", _MCP_SESSIONS_DESCRIPTION, {"type": "object", "properties": listing}))
    return schemas


def _object_schema(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "properties": properties, "required": required}


def _extend_schema(schema: Json, more: Json, required: list[str] | None = None) -> Json:
    return {
        **schema,
        "properties": {**schema["properties"], **more},
        "required": [*schema["required"], *(required or ())],
    }


async def run_mcp_tool(recall: Recall, name: str, arguments: Json | None) -> ToolAnswer:
    """Runs one of the server's tools. A HoldfastError becomes an error answer."""
    try:
        if name == "search":
            search = parse_arguments(arguments, _McpSearchArguments)
            session = await _checked_session(recall, search.session)
            return ToolAnswer(await search_answer(recall, search, search.max_tokens, session))
        if name == "read":
            read = parse_arguments(arguments, _McpReadArguments)
            session = await _required_session(recall, read.session)
            return ToolAnswer(await read_answer(recall, read, read.max_tokens, session))
        if name == "restore" and recall.can_restore:
            restore = parse_arguments(arguments, _McpRestoreArguments)
            session = await _required_session(recall, restore.session)
            return ToolAnswer(await restore_answer(recall, restore, session))
        if name == "undo" and recall.can_restore:
            undo = parse_arguments(arguments, _McpUndoArguments)
            return ToolAnswer(await _undo(recall, await _required_session(recall, undo.session)))
        if name == "fork" and recall.can_restore:
            fork = parse_arguments(arguments, _McpForkArguments)
            return ToolAnswer(await _fork(recall, await _required_session(recall, fork.session), fork.at))
        if name == "sessions" and recall.session_id is None:
            return ToolAnswer(await _list_sessions(recall, parse_arguments(arguments, _McpSessionsArguments)))
        names = ", ".join(known for known, _, _ in _tool_schemas(recall))
        raise InvalidInput(f"There is no tool {name!r}: use one of {names}.")
    except HoldfastError as problem:
        return error_answer(recall, problem)


async def _checked_session(recall: Recall, named: str | None) -> str | None:
    """The session of a call, by its id or a part of it. Raises InvalidInput if the server is limited to another."""
    if not named:
        return None
    found = (await find_session(recall.sessions, named)).id
    if recall.session_id not in (None, found):
        raise InvalidInput(f"This server is limited to session {recall.session_id!r}: leave out `session`.")
    return found


async def _required_session(recall: Recall, named: str | None) -> str:
    if (session := await _checked_session(recall, named) or recall.session_id) is None:
        raise InvalidInput("The call needs a session: pass its id as `session`; `sessions` lists them.")
    return session


async def _undo(recall: Recall, session: str) -> str:
    before = (await recall.sessions.context(session)).tokens
    await recall.sessions.undo(session)
    after = (await recall.sessions.context(session)).tokens
    return f"The last compaction of {session} is undone: {before:,} → {after:,} tokens."


async def _fork(recall: Recall, session: str, at: str | None) -> str:
    event = None if at is None else (await SessionSearch(recall.sessions, session).find_event(at)).id
    record = await recall.sessions.fork(session, event)
    return f"Created session {record.id} from {session} up to #{record.parent_seq}."


async def _list_sessions(recall: Recall, arguments: _McpSessionsArguments) -> str:
    records = await recall.sessions.list(arguments.owner)
    first = max(arguments.offset, 0)
    page = records[first : first + min(max(arguments.limit, 1), MAX_SESSIONS_LISTED)]
    lines, end = [await _session_line(recall, record) for record in page], first + len(page)
    if page and end < len(records):
        lines.append(f"There are {len(records) - end:,} more: list them with offset {end}.")
    return "\n".join(lines) or (
        f"There are {len(records):,} sessions in all." if records else "There is no session yet."
    )


async def _session_line(recall: Recall, record: SessionRecord) -> str:
    title = clip_title(await first_user_line(recall.sessions.store, record.id)) or "(no messages)"
    details = [f"created {record.created[:16].replace('T', ' ')}", f"{record.version:,} events"]
    details += [f"of {record.owner}"] if record.owner else []
    details += [record.model] if record.model else []
    return f"{record.id}: {title} ({', '.join(details)})"
