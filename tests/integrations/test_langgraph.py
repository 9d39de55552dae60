"""LangGraph: the node with a checkpointer, interrupts and earlier states; the reducer; the pre-model hook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tests.integrations.agents.langchain import chat_model
from tests.integrations.agents.langgraph import graph_of, with_reducer
from tests.integrations.harbour_task import ANSWER, SMALL, SYSTEM, Harbour, read_log

from holdfast import SessionService, check, open_store
from holdfast.integrations.langgraph import HoldfastNode, compacting_messages

THREAD: Any = {"configurable": {"thread_id": "harbour"}, "recursion_limit": 2_000}


def question(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def test_earlier_state_continues_in_a_fork_of_the_session(tmp_path: Path) -> None:
    with Harbour() as server:
        node = HoldfastNode(
            chat_model(server).bind_tools([read_log]),
            window=SMALL.window,
            system=SYSTEM,
            store=tmp_path / "agent.db",
        )
        graph = graph_of(node).compile(checkpointer=InMemorySaver())
        state = graph.invoke(question(SMALL.prompt), THREAD)
        assert state["messages"][-1].text == ANSWER and len(state["messages"]) > 30
        earlier = next(past for past in graph.get_state_history(THREAD) if len(past.values["messages"]) == 10)
        assert graph.invoke(None, earlier.config | {"recursion_limit": 2_000})["messages"][-1].text == ANSWER
    assert server.refused == [] and server.overflowed == 0

    async def names() -> list[str]:
        async with SessionService(open_store(tmp_path / "agent.db")) as sessions:
            return sorted(record.id for record in await sessions.list())

    assert anyio.run(names) == ["harbour", "harbour~2"]


def test_interrupted_tool_is_resumed_with_its_call_answered_once() -> None:
    def ask_harbour_master(number: int) -> str:
        """Asks whether a log may be read."""
        return read_log(number) if interrupt(f"May I read {number}?") == "yes" else "no"

    ask_harbour_master.__name__ = "read_log"
    with Harbour() as server:
        node = HoldfastNode(chat_model(server).bind_tools([read_log]), window=SMALL.window)
        graph = graph_of(node, tools=[ask_harbour_master]).compile(checkpointer=InMemorySaver())
        given: Any = question(SMALL.prompt)
        for _ in range(2 * SMALL.logs):
            state = graph.invoke(given, THREAD)
            if not (waiting := state.get("__interrupt__")):
                break
            given = Command(resume={one.id: "yes" for one in waiting})
    assert state["messages"][-1].text == ANSWER and server.refused == []


def test_asynchronous_graph_finishes() -> None:
    async def run(server: Harbour) -> str:
        graph = graph_of(HoldfastNode(chat_model(server).bind_tools([read_log]), window=SMALL.window)).compile()
        state = await graph.ainvoke(question(SMALL.prompt), {"recursion_limit": 2_000})
        return str(state["messages"][-1].text)

    with Harbour() as server:
        assert anyio.run(run, server) == ANSWER
    assert server.refused == [] and server.overflowed == 0


def test_reducer_keeps_the_state_and_its_checkpoints_small() -> None:
    with Harbour() as server:
        assert with_reducer(server) == ANSWER
    assert server.refused == [] and server.overflowed == 0


def test_reducer_replaces_messages_by_id_like_add_messages() -> None:
    reduce = compacting_messages(8_000)
    state = reduce([], [HumanMessage("a", id="1")])
    assert reduce(state, [HumanMessage("b", id="1")]) == [HumanMessage("b", id="1")]


def test_reducer_leaves_open_calls_open() -> None:
    reduce = compacting_messages(2_000)
    state: Any = [HumanMessage("Read the logs.", id="q")]
    for number in range(20):
        call = {"name": "read_log", "args": {"number": number}, "id": f"c{number}"}
        state = reduce(state, [AIMessage("", tool_calls=[call])])
        assert state[-1].tool_calls[0]["id"] == f"c{number}"
        state = reduce(state, [ToolMessage(read_log(number), tool_call_id=f"c{number}")])
        assert check(state, "langchain", ready=True) == []
    assert len(state) < 30


def test_pre_model_hook_gets_the_messages_to_send() -> None:
    history: list[Any] = [HumanMessage("Read the logs.", id="q")]
    node = HoldfastNode(window=2_000)
    for number in range(12):
        call = {"name": "read_log", "args": {"number": number}, "id": f"c{number}"}
        history += [AIMessage("", tool_calls=[call], id=f"a{number}")]
        history += [ToolMessage(read_log(number), tool_call_id=f"c{number}", id=f"t{number}")]
        sent = node.invoke({"messages": history})["llm_input_messages"]
        assert check(sent, "langchain", ready=True) == []
    assert len(str(sent)) < len(str(history)) / 2
