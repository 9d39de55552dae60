"""H1: any MCP client can look into a session. The official client speaks to a real server over stdio."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from recall_story import tell

from holdfast import Recall, SessionService, SQLiteStore
from holdfast.recall import server

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(*arguments: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "holdfast", "mcp", *arguments])
    async with Client(stdio_client(parameters)) as client:
        yield client


async def told(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return f"Error: {text}" if result.is_error and not text.startswith("Error") else text


@pytest.fixture
async def path(tmp_path: Path) -> str:
    path = tmp_path / "agent.db"
    async with SessionService(SQLiteStore(path)) as service:
        await tell(service)
        await tell(service, "other")
    return str(path)


async def test_h1_a_client_finds_and_reads_what_was_compacted_away(path: str) -> None:
    async with connected(path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "read", "sessions"}
        assert tools["read"].input_schema["required"] == ["ref", "session"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        sessions = await told(client, "sessions")
        assert sorted(line.partition(":")[0] for line in sessions.splitlines()) == ["other", "s"]
        found = await told(client, "search", query="quarkling osterhaven")
        assert "s #4 assistant" in found and "other #4 assistant" in found and "archived" in found
        read = await told(client, "read", ref="#4", session="s")
        assert read.endswith("so the quarkling check fails.")
        long = await told(client, "read", ref="#3", session="s", max_tokens=200)
        assert "There is more: read #3@" in long


async def test_a_long_list_of_sessions_says_how_to_go_on(path: str) -> None:
    async with connected(path) as client:
        first, more = (await told(client, "sessions", limit=1)).splitlines()
        assert more == "There are 1 more: list them with offset 1."
        [second] = (await told(client, "sessions", limit=1, offset=1)).splitlines()
        assert sorted(line.partition(":")[0] for line in (first, second)) == ["other", "s"]
        assert await told(client, "sessions", offset=9) == "There are 2 sessions in all."


async def test_a_server_for_one_session(path: str) -> None:
    async with connected(path, "--session", "s") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "read"}
        assert "session" not in tools["read"].input_schema["properties"]
        assert (await told(client, "search", query="quarkling", role="assistant")).startswith("#4 assistant")
        assert (await told(client, "read", ref="#4")).endswith("so the quarkling check fails.")
        assert (await told(client, "read", ref="[4]", session="s")).endswith("so the quarkling check fails.")


async def test_a_server_for_one_session_shows_no_other(path: str) -> None:
    async with connected(path, "--session", "s") as client:
        for name, arguments in (("search", {"query": "quarkling"}), ("read", {"ref": "#4"})):
            answer = await told(client, name, session="other", **arguments)
            assert answer == "Error: This server is about session 's' alone: leave out `session`."


async def test_errors_are_results_that_can_be_read(path: str) -> None:
    async with connected(path) as client:
        for name, arguments, words in (
            ("search", {"query": ""}, "nothing to look for"),
            ("search", {}, "missing required field `query`"),
            ("search", {"query": "x", "offset": 10**20}, "offset must be between 0 and"),
            ("search", {"query": "x", "kind": "bogus"}, "'bogus' is not a kind of event: use one of message"),
            ("search", {"query": "x", "archived": True}, "name the session, or leave out archived"),
            ("search", {"query": "x", "since": "1d", "until": "2d"}, "since 1d is later than until 2d"),
            ("search", {"query": "x", "max_tokens": -1}, "max_tokens must be at least"),
            ("read", {"ref": "#3@" + "9" * 5_000, "session": "s"}, "is no reference"),
            ("read", {"ref": "#3", "session": "x" * 100_000}, "check the id, or create it first."),
            ("search", {"query": "x", "session": "nowhere"}, "no session 'nowhere'"),
            ("read", {"ref": "#4"}, "Name the session that the reference is about as `session`"),
            ("read", {"ref": "#99", "session": "s"}, "it has #1 to #15"),
            ("write", {}, "no tool 'write' here: use one of search, read, sessions"),
        ):
            answer = await told(client, name, **arguments)
            assert answer.startswith("Error: ") and words in answer, answer


async def test_a_session_of_another_tool_is_served_too() -> None:
    async with connected("example:support") as client:
        assert "#27 assistant refund" in await told(client, "search", query="colour accepted")


async def test_it_is_only_read(path: str) -> None:
    async with SessionService(SQLiteStore(path)) as service:
        before = await service.export("s")
        async with connected(path) as client:
            await told(client, "search", query="table")
            await service.append("s", {"role": "user", "content": "a late zebrafish"})
            assert "zebrafish" in await told(client, "search", query="zebrafish")
        assert (await service.export("s"))[: len(before)] == before


@pytest.mark.parametrize(("found", "words"), [(None, "needs the MCP SDK: pip"), ("1.30.0", "MCP SDK 2, not 1.30.0")])
async def test_without_the_sdk_it_says_how_to_install_it(
    service: SessionService, monkeypatch: pytest.MonkeyPatch, found: str | None, words: str
) -> None:
    def version(name: str) -> str:
        if found is None:
            raise server.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(server, "version", version)
    with pytest.raises(server.InvalidInput, match=words):
        server.make_server(Recall(service))
