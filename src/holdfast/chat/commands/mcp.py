"""/mcp: the MCP servers of the chat, their state and their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.tools.mcp_client import McpServer
from ...agent.tools.mcp_config import PROJECT_FILE, USER_FILE
from ...io.text import first_line
from ...settings import user_file
from .base import ChatCommand, CommandResult, format_table, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat


async def _run_mcp(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, MCP.usage)
    servers = chat.mcp.servers
    if not servers:
        own = user_file().with_name(USER_FILE)
        return CommandResult(
            f"There are no MCP servers: define them as mcpServers in {own}, or in {PROJECT_FILE} here."
        )
    return CommandResult("\n\n".join(map(_describe, servers)))


def _describe(server: McpServer) -> str:
    config = server.config
    state = f"{server.state}: {server.why}" if server.why else server.state
    origin = "yours" if config.is_own else f"of the project, {config.file}"
    rows = [(f"  {tool.name}", first_line(tool.about)) for tool in server.tools]
    tools = format_table(rows) if rows else []
    return "\n".join([f"{config.name} ({origin}): {state}", f"  {config.target}", *tools])


MCP = ChatCommand("mcp", "/mcp", "list MCP servers, their state and their tools", _run_mcp)
