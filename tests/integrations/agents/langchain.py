"""LangChain's `create_agent`."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware import SummarizationMiddleware as Summarization
from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openai import ChatOpenAI
from tests.integrations.harbour_task import SYSTEM, Harbour, read_log

from holdfast.integrations.langchain import HoldfastMiddleware


def chat_model(server: Harbour) -> ChatOpenAI:
    return ChatOpenAI(
        model="harbor-1",
        base_url=server.openai_url,
        api_key="sk-harbor-0123456789",
        max_retries=0,
        profile={"max_input_tokens": server.task.window},
    )


def run(server: Harbour, *middleware: AgentMiddleware) -> str:
    agent = create_agent(chat_model(server), [read_log], system_prompt=SYSTEM, middleware=middleware)
    state = agent.invoke({"messages": [("user", server.task.prompt)]}, {"recursion_limit": 2_000})
    return str(state["messages"][-1].text)


def with_holdfast(server: Harbour, **options: Any) -> str:
    return run(server, HoldfastMiddleware(**options))


class Trimming(AgentMiddleware):
    """`trim_messages`, as its documentation shows it."""

    def __init__(self, max_tokens: int) -> None:
        super().__init__()
        self.max_tokens = max_tokens

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        kept = trim_messages(
            request.messages,
            max_tokens=self.max_tokens,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
        )
        return handler(request.override(messages=kept))


OWN = {
    "nothing": run,
    "SummarizationMiddleware": lambda server: run(
        server, Summarization(chat_model(server), trigger=("fraction", 0.6), keep=("fraction", 0.3))
    ),
    "ContextEditingMiddleware": lambda server: run(
        server, ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=server.task.window // 2)])
    ),
    "trim_messages": lambda server: run(server, Trimming(server.task.window // 2)),
}
