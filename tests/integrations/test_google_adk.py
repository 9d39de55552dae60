"""The ADK plugin and summarizer: streaming, sessions, sub-agents, recall, late events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from tests.integrations.agents.google_adk import ask, gemini, loop, with_summarizer
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, open_store
from holdfast.integrations.google_adk import HoldfastPlugin, HoldfastSummarizer


def runner_of(agent: LlmAgent, sessions: InMemorySessionService, **app: Any) -> Runner:
    return Runner(app=App(name="harbour", root_agent=agent, **app), session_service=sessions)


def text_content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def test_streamed_run_finishes() -> None:
    async def run(server: Harbour) -> str:
        agent = LlmAgent(name="clerk", model=gemini(server), instruction=SYSTEM, tools=[read_log])
        sessions = InMemorySessionService()
        runner = runner_of(agent, sessions, plugins=[HoldfastPlugin(window=SMALL.window)])
        session = await sessions.create_session(app_name="harbour", user_id="captain")
        shown = ""
        async for event in runner.run_async(
            user_id="captain",
            session_id=session.id,
            new_message=text_content("user", SMALL.prompt),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        ):
            shown += "".join(part.text or "" for part in event.content.parts or ()) if event.content else ""
        return shown

    with Harbour() as server:
        assert ANSWER in asyncio.run(run(server))
    assert server.refused == [] and server.overflowed == 0


def test_session_keeps_every_event_and_another_process_continues(tmp_path: Path) -> None:
    async def run(server: Harbour) -> int:
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="harbour", user_id="captain", session_id="thread-1")
        for prompt in (SMALL.prompt, "What was the seal word?"):
            plugin = HoldfastPlugin(window=SMALL.window, store=tmp_path / "agent.db")  # as in another process
            agent = LlmAgent(name="clerk", model=gemini(server), instruction=SYSTEM, tools=[read_log])
            assert ANSWER in await ask(runner_of(agent, sessions, plugins=[plugin]), session.id, prompt)
        kept = await sessions.get_session(app_name="harbour", user_id="captain", session_id="thread-1")
        assert kept is not None and server.requests[-1].size < SMALL.window
        return len(kept.events)

    with Harbour() as server:
        assert asyncio.run(run(server)) > SMALL.logs

    async def read() -> None:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            assert [record.id for record in await sessions.list()] == ["thread-1"]
            assert await sessions.verify("thread-1") == []

    anyio.run(read)


def test_sub_agent_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        if request.system.startswith("You lead"):
            return Say("", calls=(Call("transfer_to_agent", {"agent_name": "clerk"}),))
        return "The clerk is here."

    async def run(server: Harbour) -> str:
        clerk = LlmAgent(name="clerk", model=gemini(server), instruction="You help.", description="Helps.")
        lead = LlmAgent(name="lead", model=gemini(server), instruction="You lead.", sub_agents=[clerk])
        sessions = InMemorySessionService()
        plugin = HoldfastPlugin(window=SMALL.window, store=tmp_path / "agent.db")
        session = await sessions.create_session(app_name="harbour", user_id="captain", session_id="t")
        return await ask(runner_of(lead, sessions, plugins=[plugin]), session.id, "Ask the clerk.")

    with Harbour() as server:
        server.script = script
        assert asyncio.run(run(server)) == "The clerk is here."

    async def names() -> list[str]:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            return sorted(record.id for record in await sessions.list())

    assert anyio.run(names) == ["t", "t/clerk"]


def test_agent_recalls_what_was_archived() -> None:
    def script(request: Request) -> Any:
        text = str(request.body["contents"][-1])
        if "recall_search" in text and "functionResponse" in text:
            return "It has 97 feet." if "berth 2 has 97 feet" in text else "I cannot find it."
        if "archived in full" in str(request.body["contents"]):
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_log", {"number": next(numbers)}),))

    numbers = iter(range(1, 1_000))
    with Harbour() as server:
        server.script = script
        answer = asyncio.run(loop(server, plugins=[HoldfastPlugin(window=SMALL.window)]))
    assert answer == "It has 97 feet." and server.refused == []


def test_events_summarizer_keeps_the_task_without_a_model() -> None:
    with Harbour() as server:
        assert with_summarizer(server) == ANSWER
    assert (server.refused, server.overflowed, server.model.summaries) == ([], 0, 0)


@pytest.mark.anyio
async def test_summarizer_returns_nothing_where_it_would_save_nothing() -> None:
    summarizer = HoldfastSummarizer()
    assert await summarizer.maybe_summarize_events(events=[]) is None
    brief = [Event(author="user", content=text_content("user", "ahoy"), timestamp=1.0)]
    assert await summarizer.maybe_summarize_events(events=brief) is None


def test_late_event_is_sent() -> None:
    """ADK hides an event whose time lies in a compacted range, although it was stored later and never summarised."""

    async def run(server: Harbour, **app: Any) -> str:
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="harbour", user_id="captain")
        for second, text in enumerate(("The ship is the Ann.", "Noted.")):
            author = "user" if second == 0 else "clerk"
            content = text_content("user" if second == 0 else "model", text)
            await sessions.append_event(session, Event(author=author, content=content, timestamp=float(second + 1)))
        if not app:  # as after a compaction by ADK
            replaced = EventCompaction(
                start_timestamp=1.0, end_timestamp=2.0, compacted_content=text_content("user", "A summary.")
            )
            event = Event(author="user", actions=EventActions(compaction=replaced), timestamp=3.0)
            await sessions.append_event(session, event)
        late = Event(author="user", content=text_content("user", "It draws 97 feet."), timestamp=1.5)
        await sessions.append_event(session, late)
        await ask(
            runner_of(LlmAgent(name="clerk", model=gemini(server)), sessions, **app), session.id, "What draws it?"
        )
        return str(server.requests[-1].body["contents"])

    with Harbour() as server:
        server.script = "97 feet."
        assert "97 feet" not in asyncio.run(run(server))
        assert "97 feet" in asyncio.run(run(server, plugins=[HoldfastPlugin(window=SMALL.window)]))
