"""LangGraph: a node that calls a model with compacted messages, and a reducer that keeps a graph's state small.

    graph.add_node("model", HoldfastNode(model.bind_tools(tools), window=200_000))

The node leaves the state whole: every message stays in it and in its checkpoints. It takes the place of `trim_messages`
and of langmem's `SummarizationNode`. The reducer is for states that must not grow; their earlier checkpoints hold what
it removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compaction import PolicyLike, compact
from ..compaction.policy import find_policy
from ..messages.frameworks import not_installed
from .conversation import AgentConversation, AgentConversations

try:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.graph.message import add_messages

    from .langchain import as_summarizer, conversation_key, recall_tools
except ModuleNotFoundError as problem:
    raise not_installed("langgraph") from problem

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastNode", "compacting_messages"]


class HoldfastNode(Runnable[Any, dict[str, Any]]):
    """A node that sends the messages of the state, compacted, to a model and adds its reply to the state.

    Without a `model` it returns the compacted messages as `llm_input_messages`, for a `pre_model_hook`. A prompt that
    the provider rejects as too long is compacted and sent once more. With a `store` each thread is a session.
    """

    def __init__(
        self,
        model: Runnable[Any, Any] | None = None,
        *,
        window: int | None = None,
        system: str | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: BaseChatModel | SummarizerLike | None = None,
        store: StoreLike | None = None,
        messages_key: str = "messages",
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.model = model
        self.messages_key = messages_key
        self._system: list[Any] = [] if system is None else [("system", system)]
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=as_summarizer(summarizer), store=store, listen=listen
        )

    def recall_tools(self) -> list[BaseTool]:
        """Returns tools to search and read everything in the thread that calls them."""
        return recall_tools(self.conversations)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Runs the node on a state."""
        messages = input[self.messages_key]
        conversation = self._conversation(messages)
        sent = conversation.prepare(messages)
        if self.model is None:
            return {"llm_input_messages": sent}
        try:
            reply = self.model.invoke(self._system + sent, config)
        except Exception as problem:
            smaller = conversation.recover(problem, messages)
            if smaller is None:
                raise
            reply = self.model.invoke(self._system + smaller, config)
        return {self.messages_key: [reply]}

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """`invoke` for asynchronous graphs."""
        messages = input[self.messages_key]
        conversation = self._conversation(messages)
        sent = await conversation.aprepare(messages)
        if self.model is None:
            return {"llm_input_messages": sent}
        try:
            reply = await self.model.ainvoke(self._system + sent, config)
        except Exception as problem:
            smaller = await conversation.arecover(problem, messages)
            if smaller is None:
                raise
            reply = await self.model.ainvoke(self._system + smaller, config)
        return {self.messages_key: [reply]}

    def _conversation(self, messages: Sequence[BaseMessage]) -> AgentConversation:
        bound: Any = getattr(self.model, "kwargs", None) or {}
        model: Any = getattr(self.model, "bound", self.model)
        profile = getattr(model, "profile", None) or {}
        return self.conversations.conversation(
            conversation_key(messages),
            window=profile.get("max_input_tokens"),
            model=getattr(model, "model_name", None),
            system=self._system[0][1] if self._system else None,
            tools=lambda: bound.get("tools") or [],
            format="langchain",
        )


def compacting_messages(
    window: int, *, preset: PolicyLike = "holdfast", summarizer: BaseChatModel | SummarizerLike | None = None
) -> Callable[[Any, Any], Any]:
    """Returns a reducer for the messages of a state: `add_messages`, and a compaction where they near the window.

    It has no memory of its own: the notes of earlier compactions are read back from the messages, so that any process
    continues from any checkpoint.
    """
    policy = find_policy(preset)
    given = as_summarizer(summarizer)

    def reduce(left: Any, right: Any) -> Any:
        merged: Any = add_messages(left, right)
        result = compact(merged, preset=policy, window=window, summarizer=given)
        return add_messages([], list(result.messages)) if result.tokens_saved else merged

    return reduce
