"""A LangGraph state graph of two nodes: the model and its tools."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from tests.integrations.agents.langchain import chat_model
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.langgraph import HoldfastNode, compacting_messages


def graph_of(model: Any, reducer: Any = add_messages, tools: Any = (read_log,)) -> StateGraph[Any, Any, Any, Any]:
    state: Any = TypedDict("state", {"messages": Annotated[list[AnyMessage], reducer]})
    graph = StateGraph(state)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph


def run(server: Harbour, model: Any = None, reducer: Any = add_messages) -> str:
    bound = chat_model(server).bind_tools([read_log])
    graph = graph_of(model or (lambda state: {"messages": [bound.invoke(state["messages"])]}), reducer).compile()
    messages = [("system", SYSTEM), ("user", server.task.prompt)]
    return str(graph.invoke({"messages": messages}, {"recursion_limit": 2_000})["messages"][-1].text)


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastNode(chat_model(server).bind_tools([read_log]), **options))


def with_trimming(server: Harbour) -> str:
    trim = trim_messages(
        max_tokens=server.task.window // 2,
        token_counter=count_tokens_approximately,
        strategy="last",
        include_system=True,
        start_on="human",
        end_on=("human", "tool"),
    )
    call = trim | chat_model(server).bind_tools([read_log])
    return run(server, RunnableLambda(lambda state: {"messages": [call.invoke(state["messages"])]}))


def with_reducer(server: Harbour) -> str:
    return run(server, reducer=compacting_messages(server.task.window))


OWN = {"nothing": run, "trim_messages": with_trimming}
