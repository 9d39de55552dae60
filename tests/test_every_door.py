"""One policy and one size: every door decides by the same numbers for the same history (H7, H8).

The table has a line for each preset and history, and a column for each door. A door is what an application calls:
a list, a session, a keeper, a job, a turn, the chat, the gateway, the inspector, the command line.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from anyio import to_thread
from click.testing import CliRunner

from holdfast import BlockingSessionService, Keeper, SessionService, SQLiteStore, acompact, compact, preset
from holdfast.agent.tools import WorkingFolder, approve_all
from holdfast.chat import Chat
from holdfast.cli import main
from holdfast.compaction import Policy
from holdfast.compaction.presets import PRESETS
from holdfast.context import Request, View
from holdfast.errors import NoRoom, SummaryFailed
from holdfast.gateway import Gateway, GatewayOptions
from holdfast.jobs import JobRunner
from holdfast.jobs.queue import Job
from holdfast.messages import Message, Text, Tool, ToolCall, ToolResult, encode_all, encode_tools
from holdfast.models import ScriptedAgentModel
from holdfast.web import Access, Inspector, listen, serve_inspector
from providers import ProviderServer
from real_sessions import WHOLE

pytestmark = pytest.mark.anyio
WINDOW = 16_000
NOTES = "## Completed Work\n- The berths were read.\n## Pending Work\n- [ ] The rest of the berths."
RULES = "You keep the harbour's files. Never moor at berth 13. "
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/harbor:streamGenerateContent?alt=sse",
}


class Row(NamedTuple):
    """What a door decides by."""

    threshold: int | None
    target: int | None
    estimator: str
    tokens: int


class History(NamedTuple):
    """A conversation that ends with the user's message."""

    format: str
    messages: list[Any]
    system: Any = None
    tools: list[Any] | None = None


def _talk(format: str, turns: int, words: int, *, calls: bool = False, system: int = 0, tools: int = 0) -> History:
    """A conversation of `turns` turns, with a system prompt and tools of about so many words."""
    spoken: list[Message] = []
    for turn in range(turns):
        spoken.append(Message("user", (Text(f"Read berth {turn}. " + "The tide was high. " * (words // 4)),)))
        if calls:
            call = ToolCall(f"call-{turn}", "read_berth", {"berth": turn})
            found = (Text(f"berth {turn}: free\n" + "depth 7 feet\n" * (words // 3)),)
            spoken.append(Message("assistant", (call,)))
            spoken.append(Message("tool", (ToolResult(call.id, found, name="read_berth"),)))
        spoken.append(Message("assistant", (Text(f"Berth {turn} is free. " + "It was dredged. " * (words // 3)),)))
    spoken.append(Message("user", (Text("And which one is next?"),)))
    defined = tuple(
        Tool(f"tool_{number}", "Reads what the harbour wrote about a berth. " * 20, {"type": "object"})
        for number in range(tools // 160)
    )
    messages, prompt = encode_all(spoken, format), RULES * (system // 10) or None
    if format == "openai-chat" and prompt:  # where the protocol has it
        messages, prompt = [{"role": "system", "content": prompt}, *messages], None
    given = {"parts": [{"text": prompt}]} if format == "gemini" else prompt
    return History(format, messages, given, encode_tools(format, defined) if defined else None)


HISTORIES = {
    "one message": _talk("openai-chat", 0, 0),
    "short": _talk("openai-chat", 3, 40),
    "long": _talk("openai-chat", 24, 400),
    "over the window": _talk("openai-chat", 60, 400),
    "with calls": _talk("openai-chat", 14, 250, calls=True),
    "a large prompt": _talk("openai-chat", 6, 300, system=8_000),
    "large tools": _talk("openai-chat", 6, 300, tools=7_000),
    "prompt and tools over the threshold": _talk("openai-chat", 3, 100, system=6_000, tools=6_000),
    "anthropic": _talk("anthropic", 14, 300, calls=True, system=400, tools=600),
    "anthropic, short": _talk("anthropic", 2, 30),
    "responses": _talk("openai-responses", 14, 300, calls=True, system=400, tools=600),
    "gemini": _talk("gemini", 14, 300, calls=True, system=400, tools=600),
}


# -- doors ------------------------------------------------------------------------------------------------


def _summarize(prompt: str) -> str:
    return NOTES


@asynccontextmanager
async def _stored(history: History, name: str, path: Path, last: int | None = None) -> AsyncIterator[SessionService]:
    """Opens a service with this history as session `s`."""
    async with SessionService(SQLiteStore(path), preset=name, window=WINDOW, summarizer=_summarize) as service:
        await service.create(id="s", format=history.format, system=history.system, tools=history.tools)
        if messages := history.messages[:last]:
            await service.append("s", messages)
        yield service


async def by_list(history: History, name: str, path: Path) -> None:
    parts: dict[str, Any] = {"system": history.system, "tools": history.tools, "format": history.format}
    work = partial(compact, history.messages, preset=name, window=WINDOW, summarizer=_summarize, **parts)
    await to_thread.run_sync(work)


async def by_async_list(history: History, name: str, path: Path) -> None:
    parts: dict[str, Any] = {"system": history.system, "tools": history.tools, "format": history.format}
    await acompact(history.messages, preset=preset(name), window=WINDOW, summarizer=_summarize, **parts)


async def by_session(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path) as service:
        await service.compact("s")


async def by_blocking_session(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path):
        pass

    def work() -> None:
        with BlockingSessionService(SQLiteStore(path), summarizer=_summarize) as service:
            service.compact("s", preset=preset(name).changed(window=WINDOW))

    await to_thread.run_sync(work)


async def by_preview(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path) as service:
        with suppress(SummaryFailed):  # by one preset, without a model
            await service.preview("s", preset=name)


async def by_keeper(history: History, name: str, path: Path) -> None:
    keeper = Keeper(
        preset=name,
        window=WINDOW,
        system=history.system,
        tools=history.tools,
        format=history.format,
        summarizer=_summarize,
    )
    await keeper.prepare_step(history.messages)


async def by_keeper_of_a_session(history: History, name: str, path: Path) -> None:
    async with _stored(history, "holdfast", path) as service:
        await Keeper(service, "s", preset=name, window=WINDOW, summarizer=_summarize).prepare_step()


async def by_job(history: History, name: str, path: Path) -> None:
    """The worker is not told which preset and window the application has."""
    async with _stored(history, name, path):
        pass
    async with SessionService(SQLiteStore(path), summarizer=_summarize) as worker:
        await JobRunner(worker)(Job("session", "s"))


async def by_turn(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path, -1) as service, service.turn("s", id="t") as turn:
        await turn.say(history.messages[-1])
        with suppress(NoRoom):  # where system prompt and tools take the window
            await turn.request()


async def by_chat(history: History, name: str, path: Path) -> None:
    folder = path.parent / "folder"
    folder.mkdir(exist_ok=True)
    async with _stored(history, name, path) as service:
        chat = Chat(
            service,
            ScriptedAgentModel("Berth 7.", answers=NOTES),
            folder=WorkingFolder(folder),
            preset=preset(name),
            window=WINDOW,
            approve=approve_all,
            listener=lambda event: None,
        )
        async with chat.running("s"):
            await chat.agent.keeper.prepare_step()


async def by_gateway(history: History, name: str, path: Path) -> None:
    body: dict[str, Any] = {"model": "harbor", "max_tokens": 100, "messages": history.messages}
    if history.format == "openai-responses":
        body = {"model": "harbor", "input": history.messages, "instructions": history.system}
    if history.format == "gemini":
        body = {"contents": history.messages, "systemInstruction": history.system}
    if history.format == "anthropic" and history.system:
        body["system"] = history.system
    body |= {"tools": history.tools} if history.tools else {}
    body |= {} if history.format == "gemini" else {"stream": True}
    with ProviderServer(lambda request: "Berth 7.") as server:
        async with SessionService(SQLiteStore(path), preset=name, window=WINDOW, summarizer=_summarize) as service:
            gateway = Gateway(GatewayOptions(upstreams={"": server.anthropic_url}, port=0), service)
            stop, started, ports = anyio.Event(), anyio.Event(), list[int]()

            def listens(port: int) -> None:
                ports.append(port)
                started.set()

            async with anyio.create_task_group() as group, httpx.AsyncClient(timeout=30) as client:
                group.start_soon(gateway.run, stop, listens)
                await started.wait()
                url = f"http://127.0.0.1:{ports[0]}{PATHS[history.format]}"
                headers = {"authorization": "Bearer sk-harbor", "x-api-key": "sk", "x-goog-api-key": "sk"}
                reply = await client.post(url, json=body, headers=headers | {"anthropic-version": "2023-06-01"})
                assert reply.status_code == 200, reply.text
                stop.set()


async def by_inspector(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path):
        pass
    with listen("127.0.0.1", 0) as listening:
        access = Access("127.0.0.1", listening.getsockname()[1])
        inspector = Inspector(SessionService(SQLiteStore(path)), access)
        stop = anyio.Event()
        async with anyio.create_task_group() as group, httpx.AsyncClient(timeout=30, follow_redirects=True) as client:
            group.start_soon(serve_inspector, inspector, listening, stop)
            await client.get(access.opening_url)
            reply = await client.get(access.address.rstrip("/") + "/api/s/s")
            assert reply.status_code == 200, reply.text
            stop.set()


async def by_command_line(history: History, name: str, path: Path) -> None:
    async with _stored(history, name, path):
        pass
    command = ["compact", str(path), "--session", "s", "--preset", name, "--budget", str(WINDOW), "--json"]
    done = await to_thread.run_sync(CliRunner().invoke, main, command)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    json.loads(done.stdout)


Door = Callable[[History, str, Path], Awaitable[None]]
DOORS: dict[str, Door] = {
    "compact": by_list,
    "acompact": by_async_list,
    "session": by_session,
    "blocking session": by_blocking_session,
    "preview": by_preview,
    "keeper": by_keeper,
    "keeper of a session": by_keeper_of_a_session,
    "job": by_job,
    "turn": by_turn,
    "chat": by_chat,
    "gateway": by_gateway,
    "inspector": by_inspector,
    "command line": by_command_line,
}


CASES = [
    (name, history)
    for row, name in enumerate(PRESETS)
    for column, history in enumerate(HISTORIES)
    if WHOLE or (column - row) % 6 == 0
]
"""All of the table with HOLDFAST_WHOLE set, else a part of it, with every preset and every history."""


# -- the table --------------------------------------------------------------------------------------------


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Row]]:
    """Collects what every decision goes by: each policy is asked for its numbers in one place."""
    rows: list[Row] = []
    resolve = Policy.request

    def request(self: Policy, view: View, *args: Any, **options: Any) -> tuple[Any, Request]:
        bounds, made = resolve(self, view, *args, **options)
        rows.append(Row(bounds.threshold, bounds.target, view.token_sums.estimator.name, view.tokens))
        return bounds, made

    monkeypatch.setattr(Policy, "request", request)
    yield rows


@pytest.mark.parametrize(("name", "history"), CASES)
async def test_h7_h8_every_door_decides_by_the_same_numbers(
    name: str, history: str, decided: list[Row], tmp_path: Path
) -> None:
    table: dict[str, Row] = {}
    for door, enter in DOORS.items():
        (folder := tmp_path / door.replace(" ", "-")).mkdir()
        decided.clear()
        await enter(HISTORIES[history], name, folder / "sessions.db")
        assert decided, f"{door} decided by nothing"
        table[door] = decided[0]
    lines = "\n".join(f"{door:20} {row}" for door, row in table.items())
    assert len(set(table.values())) == 1, f"{name}, {history}:\n{lines}"
