"""LangChain: a middleware for `create_agent` that keeps what is sent to the model inside its window.

    agent = create_agent(model, tools, middleware=[HoldfastMiddleware(window=200_000)])

The state of the agent keeps every message, and so does its checkpointer; only the model request holds the compacted
messages. It takes the place of `SummarizationMiddleware`, `ContextEditingMiddleware` and `trim_messages`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..messages import Tool
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.tools import ToolRuntime
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
    from langgraph.constants import TAG_NOSTREAM
except ModuleNotFoundError as problem:
    raise not_installed("langchain") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastMiddleware", "as_summarizer", "conversation_key", "recall_tools"]


class HoldfastMiddleware(AgentMiddleware):
    """Compacts what an agent sends to its model; the messages in the agent's state stay complete.

    `window` is the model's context window, by default that of its profile or of the catalog. `summarizer` is a chat
    model or anything else that `compact` takes; without one the ledger is kept, and no model is called. With a `store`
    each thread is a session of its own id. With `recall` the agent gets tools to search and read what was archived.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: BaseChatModel | SummarizerLike | None = None,
        store: StoreLike | None = None,
        recall: bool = True,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        super().__init__()
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=as_summarizer(summarizer), store=store, listen=listen
        )
        self.tools = recall_tools(self.conversations) if recall else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Calls the model with the compacted messages; once more, compacted further, if they were still too long."""
        conversation = self._conversation(request)
        sent = request.override(messages=conversation.prepare(request.messages))
        try:
            return handler(sent)
        except Exception as problem:
            smaller = conversation.recover(problem, request.messages)
            if smaller is None:
                raise
        return handler(request.override(messages=smaller))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """`wrap_model_call` for asynchronous agents."""
        conversation = self._conversation(request)
        sent = request.override(messages=await conversation.aprepare(request.messages))
        try:
            return await handler(sent)
        except Exception as problem:
            smaller = await conversation.arecover(problem, request.messages)
            if smaller is None:
                raise
        return await handler(request.override(messages=smaller))

    def _conversation(self, request: ModelRequest[Any]) -> AgentConversation:
        model: Any = request.model
        profile = getattr(model, "profile", None) or {}
        return self.conversations.conversation(
            conversation_key(request.messages),
            window=profile.get("max_input_tokens"),
            model=getattr(model, "model_name", None) or getattr(model, "model", None),
            system=None if request.system_prompt is None else str(request.system_prompt),
            tools=lambda: [convert_to_openai_tool(tool) for tool in request.tools],
            format="langchain",
        )


def conversation_key(messages: Sequence[BaseMessage]) -> str:
    """Returns a name for the conversation in which this runs: the thread's id, and for sub-agents their own.

    A sub-agent has the thread of its parent and a graph of its own; its first message tells it from others.
    """
    first = next((message.id for message in messages if message.id), "") or ""
    try:
        configured = get_config().get("configurable", {})
    except RuntimeError:  # outside of a graph
        return first or "conversation"
    thread = configured.get("thread_id")
    nested = "|" in str(configured.get("checkpoint_ns", ""))
    if thread is None:
        return first or "conversation"
    return f"{thread}/{first}" if nested else str(thread)


def recall_tools(conversations: AgentConversations) -> list[BaseTool]:
    """Returns tools to search and read everything in the conversation that calls them, archived or not."""
    return [_recall_tool(conversations, tool) for tool in RECALL_TOOLS]


def _recall_tool(conversations: AgentConversations, tool: Tool) -> BaseTool:
    def run(runtime: ToolRuntime, **arguments: Any) -> str:
        key = conversation_key(runtime.state["messages"])
        return conversations.answer_recall_blocking(key, tool.name, arguments)

    async def arun(runtime: ToolRuntime, **arguments: Any) -> str:
        key = conversation_key(runtime.state["messages"])
        return await conversations.answer_recall(key, tool.name, arguments)

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=tool.parameters, func=run, coroutine=arun
    )


def as_summarizer(given: BaseChatModel | SummarizerLike | None) -> SummarizerLike | None:
    """Returns a function that calls a chat model without streaming to the user; anything else unchanged."""
    if not isinstance(given, BaseChatModel):
        return given

    async def summarize(prompt: str) -> str:
        reply = await given.ainvoke(prompt, {"tags": [TAG_NOSTREAM]})
        return str(reply.text)

    return summarize
