"""MCP servers as tools of the agent: connections, their state, and calls.

The SDK is the extra `mcp`, imported when the first server starts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import anyio

from ...errors import HoldfastError, InvalidInput
from ...io.installation import install_command
from ...io.secrets import scrub
from ...messages import Json, Media
from ...recall.tools import ToolAnswer
from .command import clip_output
from .files import AgentTool
from .mcp_config import McpServerConfig

if TYPE_CHECKING:
    from mcp import Client, types
    from mcp.client._transport import TransportStreams

START_SECONDS = 30.0
"""How long a server may take to start."""
_MAX_PAGES = 50
"""Of a list of tools."""
_MAX_TOOL_NAME = 64
"""Providers accept no longer names."""
_MAX_REASON = 300
ServerState = Literal["waiting", "starting", "ready", "refused", "failed"]
Agree = Callable[[McpServerConfig], Awaitable[bool]]
"""Asks the user whether a server of the project may be started."""


class McpServer:
    """One server: its state, its tools, and the connection while it is ready."""

    def __init__(self, config: McpServerConfig, takes_images: Callable[[], bool]) -> None:
        self.config = config
        self._takes_images = takes_images
        self.state: ServerState = "waiting"
        self.why = ""
        """Reason of a failure or refusal."""
        self.tools: list[AgentTool] = []
        """They stay after a failure, so that the prompt does not change; their calls fail then."""
        self.client: Client | None = None
        self.started = anyio.Event()
        """Set when it is known whether the server is ready."""

    def fail(self, state: ServerState, why: str) -> None:
        self.state, self.why, self.client = state, " ".join(scrub(why).split())[:_MAX_REASON], None
        self.started.set()

    async def call(self, tool: str, arguments: Json) -> ToolAnswer:
        """Calls a tool; raises `InvalidInput` if the server does not answer."""
        if self.client is None:
            raise InvalidInput(f"The MCP server {self.config.name} is not running ({self.why or self.state}).")
        try:
            result = await self.client.call_tool(tool, arguments)
        except Exception as problem:
            raise InvalidInput(f"The MCP server {self.config.name} did not answer: {_reason(problem)}") from None
        return _answer(result, self._takes_images())


class McpServers:
    """All servers of a chat; `run` holds their connections until it is cancelled."""

    def __init__(
        self,
        configs: Iterable[McpServerConfig],
        folder: Path,
        agree: Agree,
        on_problem: Callable[[str], object],
        takes_images: Callable[[], bool] = lambda: True,
    ) -> None:
        self.servers = [McpServer(config, takes_images) for config in configs]
        self._folder, self._agree, self._on_problem = folder, agree, on_problem

    @property
    def tools(self) -> list[AgentTool]:
        return [tool for server in self.servers for tool in server.tools]

    async def wait_started(self) -> None:
        """Waits until every server is ready, refused or failed."""
        for server in self.servers:
            await server.started.wait()

    async def run(self) -> None:
        """Starts the servers, those of a project after the user agreed, and reports each failure once."""
        if self.servers and find_spec("mcp") is None:
            for server in self.servers:
                server.fail("failed", "the MCP SDK is not installed")
            self._on_problem(f"MCP servers need the MCP SDK: {install_command('mcp')}")
            return
        async with anyio.create_task_group() as group:
            for server in sorted(self.servers, key=lambda one: not one.config.is_own):
                try:
                    agreed = server.config.is_own or await self._agree(server.config)
                except HoldfastError as problem:
                    agreed = False
                    self._on_problem(f"The MCP server {server.config.name} was not started: {problem}")
                if agreed:
                    group.start_soon(self._hold, server)
                else:
                    server.fail("refused", "you did not agree to start it")

    async def _hold(self, server: McpServer) -> None:
        """Connects to a server and waits until its connection ends."""
        server.state = "starting"
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            why = ""
            try:
                with anyio.CancelScope(deadline=anyio.current_time() + START_SECONDS) as scope:
                    async with _connected(server.config, self._folder, log) as (client, ended):
                        tools = await _list_tools(client)
                        scope.deadline = float("inf")
                        server.client, server.state = client, "ready"
                        server.tools = list(_agent_tools(server, tools))
                        server.started.set()
                        await ended.wait()
                        why = "it ended"
                why = why or f"it did not answer within {START_SECONDS:.0f} s"
            except Exception as problem:
                why = _reason(problem)
            lost = server.state == "ready"
            server.fail("failed", f"{why}{_last_line(log)}")
        what = "is no longer available" if lost else "did not start"
        self._on_problem(f"The MCP server {server.config.name} {what}: {server.why}. The chat continues without it.")


@asynccontextmanager
async def _connected(config: McpServerConfig, folder: Path, log: TextIO) -> AsyncIterator[tuple[Client, anyio.Event]]:
    """Yields a client, and an event that is set when the server closes the connection."""
    from mcp import Client

    ended = anyio.Event()
    async with Client(_observed(_transport(config, folder, log), ended)) as client:
        yield client, ended


@asynccontextmanager
async def _transport(config: McpServerConfig, folder: Path, log: TextIO) -> AsyncIterator[TransportStreams]:
    from mcp.client.sse import sse_client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    if config.type == "stdio":
        command = StdioServerParameters(
            command=config.command, args=list(config.args), env=dict(config.env), cwd=str(folder)
        )
        async with stdio_client(command, log) as streams:
            yield streams
    elif config.type == "sse":
        async with sse_client(config.url, dict(config.headers)) as streams:
            yield streams
    else:
        http = create_mcp_http_client(dict(config.headers))
        async with http, streamable_http_client(config.url, http_client=http) as streams:
            yield streams


@asynccontextmanager
async def _observed(transport: Any, ended: anyio.Event) -> AsyncIterator[TransportStreams]:
    """Passes messages on, and sets the event when the server sends no more: the SDK does not report it."""
    async with transport as (incoming, outgoing):
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def forward() -> None:
            async with send:
                try:
                    async for message in incoming:
                        await send.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass
            ended.set()

        async with anyio.create_task_group() as group, receive:
            group.start_soon(forward)
            yield receive, outgoing
            group.cancel_scope.cancel()


async def _list_tools(client: Client) -> Sequence[types.Tool]:
    found: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return found


def _agent_tools(server: McpServer, tools: Iterable[types.Tool]) -> Iterable[AgentTool]:
    """Yields the tools under names that providers accept; each asks for approval, whatever the server says of it."""
    names: set[str] = set()
    for tool in tools:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", tool.name)
        name = f"mcp__{server.config.name}__{plain}"[:_MAX_TOOL_NAME]
        if name in names:
            continue
        names.add(name)
        schema = {"type": "object", "properties": {}, **tool.input_schema}
        yield AgentTool(name, tool.description or tool.name, schema, partial(server.call, tool.name), changes=True)


def _answer(result: types.CallToolResult, takes_images: bool) -> ToolAnswer:
    texts: list[str] = []
    media: list[Media] = []
    for part in result.content:
        match part.type:
            case "text":
                texts.append(part.text)
            case "image" if takes_images:
                media.append(Media("image", part.mime_type, part.data))
            case "resource" if (text := getattr(part.resource, "text", None)) is not None:
                texts.append(f"{part.resource.uri}\n{text}")
            case "resource_link":
                texts.append(f"[{part.name}: {part.uri}]")
            case _:
                texts.append(f"[left out, since the model cannot read it: {part.type}]")
    text = clip_output("\n".join(texts)) or (f"(Images: {len(media)})" if media else "(No output.)")
    return ToolAnswer(f"Error: {text}" if result.is_error else text, bool(result.is_error), tuple(media))


def _reason(problem: BaseException) -> str:
    """Returns the first cause inside exception groups."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.strerror} ({problem.filename})" if problem.filename else problem.strerror
    return str(problem) or type(problem).__name__


def _last_line(log: TextIO) -> str:
    """Returns the last line that the server wrote to its standard error."""
    log.seek(0)
    lines = [line.strip() for line in log.read()[-4_000:].splitlines() if line.strip()]
    return f" ({lines[-1]})" if lines else ""
