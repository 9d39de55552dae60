"""A LangGraph agent whose state and checkpoints keep every message, while its model sees what fits.

    pip install '.[langgraph]' langchain-openai
    OPENAI_API_KEY=… python examples/langgraph_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from holdfast.integrations.langgraph import HoldfastNode
from pages import MODEL, QUESTION, WINDOW, read_file

graph = StateGraph(MessagesState)
model: Any = HoldfastNode(ChatOpenAI(model=MODEL).bind_tools([read_file]), window=WINDOW, listen=print)
graph.add_node("model", model)
graph.add_node("tools", ToolNode([read_file]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
agent = graph.compile(checkpointer=InMemorySaver())

if __name__ == "__main__":
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000}
    state = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, thread)
    print(f"history {len(state['messages'])} messages")
    print(state["messages"][-1].text)
