"""OpenAI Agents: `Runner.run`, with the Responses API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from agents import (
    Agent,
    Model,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.extensions import ToolOutputTrimmer
from openai import AsyncOpenAI
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.openai_agents import HoldfastModel, HoldfastSession

set_tracing_disabled(True)


def run(server: Harbour, wrap: Callable[[Model], Model] = lambda model: model, **options: Any) -> str:
    async def work() -> str:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0) as client:
            model = wrap(OpenAIResponsesModel(model="harbor-1", openai_client=client))
            agent = Agent(name="Clerk", instructions=SYSTEM, tools=[function_tool(read_log)], model=model)
            return str((await Runner.run(agent, server.task.prompt, max_turns=1_000, **options)).final_output)

    return anyio.run(work)


def with_holdfast(server: Harbour, store: Any = None, **options: Any) -> str:
    if store is None:
        return run(server, lambda model: HoldfastModel(model, **options))
    session = HoldfastSession("harbour", store=store, **options)
    return run(server, session.model, session=session)


OWN = {
    "nothing": run,
    "SQLiteSession": lambda server: run(server, session=SQLiteSession("harbour")),
    "ToolOutputTrimmer": lambda server: run(server, run_config=RunConfig(call_model_input_filter=ToolOutputTrimmer())),
}
