"""The session of the OpenAI Agents SDK: its protocol, runs one after the other, hand-offs, streaming and recall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    Session,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, HarbourModel, read_log
from tests.providers import Call, Request, Say

from holdfast import SessionService, check, open_store
from holdfast.integrations.openai_agents import HoldfastModel, HoldfastSession

pytestmark = pytest.mark.anyio
set_tracing_disabled(True)


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
async def responses() -> AsyncIterator[Callable[[Harbour], OpenAIResponsesModel]]:
    clients: list[AsyncOpenAI] = []

    def model(server: Harbour, kind: Any = OpenAIResponsesModel) -> Any:
        clients.append(AsyncOpenAI(base_url=server.openai_url, api_key="sk-harbor-0123456789", max_retries=0))
        return kind(model="harbor-1", openai_client=clients[-1])

    yield model
    for client in clients:
        await client.close()


async def test_session_keeps_its_protocol(tmp_path: Path) -> None:
    session = HoldfastSession("s", store=tmp_path / "agent.db")
    assert isinstance(session, Session)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([question("one"), question("two"), question("three")])
    assert await session.get_items() == [question("one"), question("two"), question("three")]
    assert await session.get_items(2) == [question("two"), question("three")]
    assert await session.pop_item() == question("three")
    await session.add_items([question("four")])
    again = HoldfastSession("s", store=tmp_path / "agent.db")
    assert await again.get_items() == [question("one"), question("two"), question("four")]
    await again.clear_session()
    assert await again.get_items() == []
    async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
        first = await sessions.context("s")
        assert [message["content"] for message in first] == ["one", "two", "three"]


async def test_runs_continue_from_the_compacted_items(tmp_path: Path, responses: Any) -> None:
    with Harbour() as server:
        for prompt in (SMALL.prompt, "Repeat your answer."):
            session = HoldfastSession("harbour", window=SMALL.window, store=tmp_path / "agent.db")
            agent = Agent(
                name="Clerk",
                instructions=SYSTEM,
                tools=[function_tool(read_log)],
                model=session.model(responses(server)),
            )
            run = await Runner.run(agent, prompt, session=session, max_turns=200)
            assert run.final_output == ANSWER
        items = await session.get_items()
    assert len(items) < 3 * SMALL.logs and check(items, "openai-responses") == []
    assert server.refused == [] and server.overflowed == 0


async def test_session_alone_compacts_between_runs(tmp_path: Path, responses: Any) -> None:
    session = HoldfastSession("s", window=2_000)
    for number in range(12):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "read_log", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": read_log(number)}
        await session.add_items(
            [question(f"Read log {number}."), call, output, {"role": "assistant", "content": "Read."}]
        )
        items = await session.get_items()
        assert check(items, "openai-responses") == []
    assert len(items) < 40


async def test_streamed_run_on_the_chat_api_finishes(responses: Any) -> None:
    with Harbour() as server:
        model = HoldfastModel(responses(server, OpenAIChatCompletionsModel), window=SMALL.window)
        agent = Agent(name="Clerk", instructions=SYSTEM, tools=[function_tool(read_log)], model=model)
        streamed = Runner.run_streamed(agent, SMALL.prompt, max_turns=200)
        async for _ in streamed.stream_events():
            pass
    assert streamed.final_output == ANSWER
    assert server.refused == [] and server.overflowed == 0


async def test_overflow_before_the_first_event_of_a_stream_is_retried_once(responses: Any) -> None:
    with Harbour() as server:
        model = HoldfastModel(responses(server), window=4 * SMALL.window)
        agent = Agent(name="Clerk", instructions=SYSTEM, tools=[function_tool(read_log)], model=model)
        streamed = Runner.run_streamed(agent, SMALL.prompt, max_turns=200)
        async for _ in streamed.stream_events():
            pass
    assert streamed.final_output == ANSWER and server.overflowed == 1


async def test_hand_off_continues_in_the_same_log(tmp_path: Path, responses: Any) -> None:
    with Harbour() as server:
        clerk_model = HarbourModel()

        def script(request: Request) -> Any:
            names = [tool["name"] for tool in request.body.get("tools", ())]
            if "transfer_to_clerk" in names:
                return Say("", calls=(Call("transfer_to_clerk"),))
            return clerk_model(request)

        server.script = script
        session = HoldfastSession("harbour", window=SMALL.window, store=tmp_path / "agent.db")
        model = session.model(responses(server))
        clerk = Agent(name="Clerk", instructions=SYSTEM, tools=[function_tool(read_log)], model=model)
        porter = Agent(name="Porter", instructions="Hand over.", handoffs=[clerk], model=model)
        run = await Runner.run(porter, SMALL.prompt, session=session, max_turns=200)
        assert run.final_output == ANSWER and run.last_agent is clerk
    assert server.refused == []


async def test_agent_recalls_what_was_archived(responses: Any) -> None:
    numbers = iter(range(1, 1_000))

    @function_tool
    def read_next() -> str:
        """Reads the next log."""
        return read_log(next(numbers))

    def script(request: Request) -> Any:
        last = request.body["input"][-1]
        if last.get("type") == "function_call_output" and last["output"].startswith("#"):
            return "It has 97 feet." if "berth 2 has 97 feet" in last["output"] else "I cannot find it."
        if request.number > SMALL.logs:
            return Say("", calls=(Call("recall_search", {"query": "berth 2 has"}),))
        return Say("", calls=(Call("read_next"),))

    with Harbour() as server:
        server.script = script
        session = HoldfastSession("harbour", window=SMALL.window)
        agent = Agent(name="Clerk", tools=[read_next, *session.recall_tools()], model=session.model(responses(server)))
        run = await Runner.run(agent, "Read the logs.", session=session, max_turns=200)
    assert run.final_output == "It has 97 feet." and server.refused == []
