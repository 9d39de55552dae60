"""H1: the MCP server, used by the official client over stdio."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from recall_story import append_story

from holdfast import Recall, SessionService, SlidingWindow, SQLiteStore
from holdfast.recall import mcp
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(*arguments: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "holdfast", "mcp", *arguments])
    async with Client(stdio_client(parameters)) as client:
        yield client


@asynccontextmanager
async def in_process(path: str, session: str | None = None) -> AsyncIterator[Client]:
    """The same server without a process of its own."""
    async with (
        SessionService(SQLiteStore(path)) as service,
        Client(mcp.make_server(Recall(service, session))) as client,
    ):
        yield client


async def tool_text(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return f"Error: {text}" if result.is_error and not text.startswith("Error") else text


@pytest.fixture
async def path(tmp_path: Path) -> str:
    path = tmp_path / "agent.db"
    async with SessionService(SQLiteStore(path)) as service:
        await append_story(service)
        await append_story(service, "other")
    return str(path)


async def test_h1_mcp_client_finds_and_reads_archived_events(path: str) -> None:
    async with connected(path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "read", "restore", "undo", "fork", "sessions"}
        assert tools["read"].input_schema["required"] == ["ref", "session"]
        read_only = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert read_only == {"search", "read", "sessions"}
        sessions = await tool_text(client, "sessions")
        assert sorted(line.partition(":")[0] for line in sessions.splitlines()) == ["other", "s"]
        found = await tool_text(client, "search", query="quarkling osterhaven")
        assert "s #4 assistant" in found and "other #4 assistant" in found and "archived" in found
        read = await tool_text(client, "read", ref="#4", session="s")
        assert read.endswith("so the quarkling check fails.")
        long = await tool_text(client, "read", ref="#3", session="s", max_tokens=200)
        assert "There is more: read #3@" in long


async def test_mcp_sessions_long_list_gives_next_offset(path: str) -> None:
    async with in_process(path) as client:
        first, more = (await tool_text(client, "sessions", limit=1)).splitlines()
        assert more == "There are 1 more: list them with offset 1."
        [second] = (await tool_text(client, "sessions", limit=1, offset=1)).splitlines()
        assert sorted(line.partition(":")[0] for line in (first, second)) == ["other", "s"]
        assert await tool_text(client, "sessions", offset=9) == "There are 2 sessions in all."


async def test_mcp_server_for_one_session_needs_no_session_argument(path: str) -> None:
    async with connected(path, "--session", "s") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "read", "restore", "undo", "fork"}
        assert "session" not in tools["read"].input_schema["properties"]
        assert (await tool_text(client, "search", query="quarkling", role="assistant")).startswith("#4 assistant")
        assert (await tool_text(client, "read", ref="#4")).endswith("so the quarkling check fails.")
        assert (await tool_text(client, "read", ref="[4]", session="s")).endswith("so the quarkling check fails.")


async def test_mcp_server_for_one_session_refuses_other_sessions(path: str) -> None:
    async with in_process(path, "s") as client:
        for name, arguments in (("search", {"query": "quarkling"}), ("read", {"ref": "#4"})):
            answer = await tool_text(client, name, session="other", **arguments)
            assert answer == "Error: This server is limited to session 's': leave out `session`."


async def test_mcp_errors_are_readable_results(path: str) -> None:
    async with in_process(path) as client:
        for name, arguments, words in (
            ("search", {"query": ""}, "The query has no words"),
            ("search", {}, "missing required field `query`"),
            ("search", {"query": "x", "offset": 10**20}, "offset must be between 0 and"),
            ("search", {"query": "x", "kind": "bogus"}, "'bogus' is not a kind of event: use one of message"),
            ("search", {"query": "x", "archived": True}, "name the session, or leave out archived"),
            ("search", {"query": "x", "since": "1d", "until": "2d"}, "since 1d is later than until 2d"),
            ("search", {"query": "x", "max_tokens": -1}, "max_tokens must be at least"),
            ("read", {"ref": "#3@" + "9" * 5_000, "session": "s"}, "is not a reference"),
            ("read", {"ref": "#3", "session": "x" * 100_000}, "check the id, or create it first."),
            ("search", {"query": "x", "session": "nowhere"}, "no session 'nowhere'"),
            ("read", {"ref": "#4"}, "The call needs a session: pass its id as `session`"),
            ("read", {"ref": "#99", "session": "s"}, "it has #1 to #15"),
            ("write", {}, "no tool 'write': use one of search, read, restore, undo, fork, sessions"),
        ):
            answer = await tool_text(client, name, **arguments)
            assert answer.startswith("Error: ") and words in answer, answer


async def test_mcp_serves_session_file_of_another_tool_with_nothing_to_restore_into() -> None:
    async with connected("example:support") as client:
        assert "restore" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "no tool 'restore'" in await tool_text(client, "restore", ref="#1")
        assert "#27 assistant refund" in await tool_text(client, "search", query="colour accepted")


async def test_h1_mcp_client_restores_an_archived_message(path: str) -> None:
    async with connected(path) as client:
        restored = await tool_text(client, "restore", ref="#4", session="s")
        assert restored == "#4 is restored: its copy is #16, at the end of the context."
        again = await tool_text(client, "restore", ref="#4", session="s")
        assert again.startswith("Error: ") and "is in the context already" in again
        missing = await tool_text(client, "restore", ref="#4")
        assert missing == "Error: The call needs a session: pass its id as `session`; `sessions` lists them."
    async with SessionService(SQLiteStore(path)) as service:
        assert "the quarkling check fails" in (await service.context("s")).messages[-1]["content"]


async def test_mcp_takes_a_part_of_an_id_and_undoes_and_forks(path: str) -> None:
    async with SessionService(SQLiteStore(path)) as service:
        compacted = (await service.context("other")).tokens
    async with in_process(path) as client:
        assert (await tool_text(client, "read", ref="#4", session="oth")).endswith("so the quarkling check fails.")
        undone = await tool_text(client, "undo", session="her")
        assert undone.startswith(f"The last compaction of other is undone: {compacted:,} → ")
        assert (await tool_text(client, "undo", session="oth")).startswith("Error: ")
        forked = await tool_text(client, "fork", session="oth", at="#4")
        assert forked.startswith("Created session ") and forked.endswith(" from other up to #4.")
        assert "has #1 to #16" in await tool_text(client, "fork", session="oth", at="#99")
    async with SessionService(SQLiteStore(path)) as service:
        assert (await service.context("other")).tokens > compacted
        assert len(await service.context(forked.split()[2])) == 4


async def test_mcp_restore_refuses_a_message_that_is_too_large(path: str) -> None:
    async with SessionService(SQLiteStore(path)) as service:
        await service.append("s", {"role": "user", "content": "tide " * 12_000})
        await service.append("s", {"role": "user", "content": "Next."})
        await service.compact("s", always, SlidingWindow(1))
    async with in_process(path, "s") as client:
        answer = await tool_text(client, "restore", ref="#16")
        assert answer.startswith("Error: Event #16 takes ") and "more than the 10,000 that may be restored" in answer


async def test_mcp_lists_sessions_with_titles(path: str) -> None:
    async with SessionService(SQLiteStore(path)) as service:
        await service.create(id="empty")
    async with in_process(path) as client:
        lines = sorted((await tool_text(client, "sessions")).splitlines())
    assert lines[0].startswith("empty: (no messages) (created ")
    assert lines[2].startswith("s: Bookings for berth K7 fail since Tuesday. Please find out why. (created ")
    assert lines[2].endswith(", 15 events, of ada)")


async def test_mcp_reading_tools_do_not_write(path: str) -> None:
    async with SessionService(SQLiteStore(path)) as service:
        before = await service.export("s")
        async with connected(path) as client:
            await tool_text(client, "search", query="table")
            await service.append("s", {"role": "user", "content": "a late zebrafish"})
            assert "zebrafish" in await tool_text(client, "search", query="zebrafish")
        assert (await service.export("s"))[: len(before)] == before


@pytest.mark.parametrize(("found", "words"), [(None, "needs the MCP SDK: .*pip"), ("1.30.0", "MCP SDK 2, not 1.30.0")])
async def test_mcp_without_sdk_names_the_install_command(
    service: SessionService, monkeypatch: pytest.MonkeyPatch, found: str | None, words: str
) -> None:
    def version(name: str) -> str:
        if found is None:
            raise mcp.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(mcp, "version", version)
    with pytest.raises(mcp.InvalidInput, match=words):
        mcp.make_server(Recall(service))
