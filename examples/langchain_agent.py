"""A LangChain agent that reads a folder of any size, one file at a time.

    pip install '.[langchain]' langchain-openai
    OPENAI_API_KEY=… python examples/langchain_agent.py FOLDER "Which page mentions a ship?"

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from holdfast.integrations.langchain import HoldfastMiddleware
from pages import MODEL, QUESTION, WINDOW, read_file

agent = create_agent(ChatOpenAI(model=MODEL), [read_file], middleware=[HoldfastMiddleware(window=WINDOW, listen=print)])

if __name__ == "__main__":
    state = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, {"recursion_limit": 1_000})
    print(f"history {len(state['messages'])} messages")
    print(state["messages"][-1].text)
