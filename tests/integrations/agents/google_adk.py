"""ADK's `Runner` with an `App`, on the Gemini protocol."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.apps._configs import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models import Gemini
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.google_adk import HoldfastPlugin, HoldfastSummarizer


def gemini(server: Harbour) -> Gemini:
    return Gemini(model="harbor-1", base_url=server.gemini_url)


def run(server: Harbour, **app: Any) -> str:
    return asyncio.run(loop(server, **app))


async def loop(server: Harbour, **app: Any) -> str:
    agent = LlmAgent(name="clerk", model=gemini(server), instruction=SYSTEM, tools=[read_log])
    sessions = InMemorySessionService()
    runner = Runner(app=App(name="harbour", root_agent=agent, **app), session_service=sessions)
    session = await sessions.create_session(app_name="harbour", user_id="captain")
    return await ask(runner, session.id, server.task.prompt)


async def ask(runner: Runner, session_id: str, prompt: str) -> str:
    """Sends a message; returns the text of the final answer."""
    answer = ""
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for event in runner.run_async(
        user_id="captain", session_id=session_id, new_message=message, run_config=RunConfig(max_llm_calls=1_000)
    ):
        if event.is_final_response() and event.content and event.content.parts:
            answer = "".join(part.text or "" for part in event.content.parts)
    return answer


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, plugins=[HoldfastPlugin(**options)])


def _compaction(server: Harbour, summarizer: Any) -> EventsCompactionConfig:
    return EventsCompactionConfig(
        summarizer=summarizer, token_threshold=server.task.window // 2, event_retention_size=4
    )


def with_summarizer(server: Harbour) -> str:
    """ADK's own compaction of events, with Holdfast's notes in place of a model's summary."""
    return run(server, events_compaction_config=_compaction(server, HoldfastSummarizer(server.task.window // 4)))


OWN = {
    "nothing": run,
    "LlmEventSummarizer": lambda server: run(
        server, events_compaction_config=_compaction(server, LlmEventSummarizer(llm=gemini(server)))
    ),
    "ContextFilterPlugin": lambda server: run(server, plugins=[ContextFilterPlugin(num_invocations_to_keep=2)]),
}
