"""A CrewAI crew of one agent, on the Anthropic protocol."""

from __future__ import annotations

from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.crewai import compacting


@tool("read_log")
def read_harbour_log(number: int) -> str:
    """Reads one log of the harbour."""
    return read_log(number)


def chat_model(server: Harbour) -> Any:
    return LLM(
        model="anthropic/claude-harbor-1",
        base_url=server.anthropic_url,
        api_key="harbor-0123456789",
        max_tokens=500,
        max_retries=0,
    )


def run(server: Harbour, llm: Any = None, **options: Any) -> str:
    agent = Agent(
        role="Clerk",
        goal="Answer questions about the harbour.",
        backstory=" ".join([SYSTEM] * 12),  # its requests are shorter, for lack of the text next to the calls
        llm=llm or chat_model(server),
        tools=[read_harbour_log],
        max_iter=1_000,
        **options,
    )
    task = Task(description=server.task.prompt, expected_output="One sentence.", agent=agent)
    return str(Crew(agents=[agent], tasks=[task]).kickoff().raw)


def with_holdfast(server: Harbour, **options: Any) -> str:
    options.setdefault("summarizer", chat_model(server).call)
    return run(server, compacting(chat_model(server), **options))


OWN = {
    "nothing": lambda server: run(server, respect_context_window=False),
    "respect_context_window": run,
}
