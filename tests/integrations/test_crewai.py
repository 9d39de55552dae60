"""The CrewAI LLM: direct calls, async, recall; and what CrewAI itself does when a prompt is too long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("crewai")

from crewai import Agent, Crew, Task
from tests.integrations.agents.crewai import chat_model, read_harbour_log
from tests.integrations.harbour_task import SMALL, Harbour
from tests.providers import Call, Request, Say

from holdfast.errors import InvalidInput
from holdfast.integrations.crewai import compacting, recall_tools


def test_direct_calls_are_compacted_too() -> None:
    messages = [{"role": "user", "content": SMALL.prompt}, {"role": "assistant", "content": "x" * 60_000}]
    messages.append({"role": "user", "content": "Go on."})
    with Harbour() as server:
        server.script = "Fine."
        llm = compacting(chat_model(server), window=SMALL.window)
        assert llm.call(list(messages)) == "Fine."
        assert llm.call("ahoy") == "Fine."

        async def both() -> list[str]:
            return [await llm.acall(list(messages)), await llm.acall("ahoy")]

        assert asyncio.run(both()) == ["Fine.", "Fine."]
        assert (server.refused, server.overflowed) == ([], 0)
        llm = compacting(chat_model(server), window=100_000)
        assert llm.call(list(messages)) == "Fine." and server.overflowed == 1
        llm = compacting(chat_model(server), window=100_000)
        assert asyncio.run(llm.acall(list(messages))) == "Fine." and server.overflowed == 2


def test_agent_recalls_what_was_archived() -> None:
    def script(request: Request) -> Any:
        last = str(request.body["messages"][-1]["content"])
        if "tool_result" in last and "'#" in last and "berth 2 has 97 feet" in last:
            return "It has 97 feet."
        if any("Compaction round" in str(message["content"]) for message in request.body["messages"]):
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_log", {"number": next(numbers)}),))

    numbers = iter(range(1, 1_000))
    with Harbour() as server:
        server.script = script
        llm = compacting(chat_model(server), window=SMALL.window)
        tools = [read_harbour_log, *recall_tools(llm)]
        agent = Agent(role="Clerk", goal="Help.", backstory="You help.", llm=llm, tools=tools, max_iter=200)
        task = Task(description="Read the logs.", expected_output="One sentence.", agent=agent)
        assert Crew(agents=[agent], tasks=[task]).kickoff().raw == "It has 97 feet."
        with pytest.raises(InvalidInput, match="compacting"):
            recall_tools(chat_model(server))
    assert server.refused == []
