"""/cost and /mcp: what the session and this run have used, and the MCP servers with their tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...agent.tools.mcp_client import McpServer
from ...agent.tools.mcp_config import PROJECT_FILE, USER_FILE
from ...io.text import first_line
from ...sessions.history import tool_of
from ...settings import user_file
from ...tokens import Usage
from ..cost import ModelCost
from .base import ChatCommand, CommandResult, Table, page, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat

_HEADER = ("", "calls", "input", "output", "cache read", "cache write", "USD")
_UNKNOWN = "unknown"


async def _run_cost(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, COST.usage)
    costs = await chat.costs()
    rows = [
        *_rows("this session", costs.session, costs.session_compactions),
        *_rows("this run", costs.run, costs.run_compactions),
    ]
    if costs.imported:
        rows += _rows(f"by {tool_of(chat.record) or 'another tool'}", costs.imported)
    if not rows:
        return CommandResult("No model has reported any usage yet.")
    groups = (*costs.session, *costs.session_compactions, *costs.run, *costs.run_compactions, *costs.imported)
    unpriced = sorted({cost.model or "the summarizer" for cost in groups if cost.price is None})
    note = [f"The model catalog has no price for all tokens of {', '.join(unpriced)}."] if unpriced else []
    ends = "Prices are the catalog's list prices. Calls that failed or were stopped report no usage."
    return page(Table([_HEADER, *rows], right=range(1, 7), header=True), "", *note, ends)


def _rows(
    title: str, replies: Sequence[ModelCost], compactions: Sequence[ModelCost] | None = None
) -> list[Sequence[str]]:
    """Returns the total of the replies, with a row for each model if there are several, and that of the summaries."""
    if not replies and not compactions:
        return []
    rows = [_row(title, _total(replies))]
    rows += [_row(f"  {cost.model}", cost) for cost in replies] if len(replies) > 1 else []
    return rows if compactions is None else [*rows, _row("  compactions", _total(compactions))]


def _total(costs: Sequence[ModelCost]) -> ModelCost:
    total = ModelCost("")
    for cost in costs:
        total = total.plus(cost.usage, cost.price, cost.calls)
    return total


def _row(title: str, cost: ModelCost) -> Sequence[str]:
    counts = (f"{getattr(cost.usage, name):,}" for name in Usage.__struct_fields__)
    return (title, f"{cost.calls:,}", *counts, _UNKNOWN if cost.price is None else f"{cost.price:.4f}")


COST = ChatCommand("cost", "/cost", "show the tokens and money used so far", _run_cost)


async def _run_mcp(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, MCP.usage)
    servers = chat.mcp.servers
    if not servers:
        own = user_file().with_name(USER_FILE)
        return CommandResult(
            f"There are no MCP servers: define them as mcpServers in {own}, or in {PROJECT_FILE} here."
        )
    return page(*(block for server in servers for block in _describe(server)))


def _describe(server: McpServer) -> Iterator[str | Table]:
    config = server.config
    state = f"{server.state}: {server.why}" if server.why else server.state
    origin = "yours" if config.is_own else f"of the project, {config.file}"
    rows = [(f"  {tool.name}", first_line(tool.about)) for tool in server.tools]
    yield f"{config.name} ({origin}): {state}\n  {config.target}"
    if rows:
        yield Table(rows, labels=False, clip=True)
    yield ""


MCP = ChatCommand("mcp", "/mcp", "list MCP servers, their state and their tools", _run_mcp)
