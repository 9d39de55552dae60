"""Strands Agents: a conversation manager that keeps what an agent sends inside the model's window.

    agent = Agent(tools=[...], conversation_manager=HoldfastConversationManager(window=200_000))

The agent's messages stay whole: only what a model call sends is compacted, by a middleware that the manager adds to its
agent. It takes the place of `SlidingWindowConversationManager` and `SummarizingConversationManager`, which remove
messages from the agent.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..messages import Tool
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    from strands import Agent
    from strands.agent.conversation_manager import ConversationManager
    from strands.hooks import AgentInitializedEvent, HookRegistry
    from strands.middleware import InvokeModelContext, InvokeModelStage
    from strands.tools import PythonAgentTool
except ModuleNotFoundError as problem:
    raise not_installed("strands") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastConversationManager"]
_DEFAULT_ID = "default"
"""The `agent_id` of an agent that was given none."""


class HoldfastConversationManager(ConversationManager):
    """Compacts the messages of each model call; once more, if the prompt was still too long.

    `window` is the model's context window, by default its `context_window_limit` or that of Holdfast's catalog. With a
    `store` the conversation is a session named by `session_id`, by default that of the agent's session manager; agents
    with an `agent_id` of their own have one each.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        session_id: str | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        super().__init__()
        self.session_id = session_id
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Adds the middleware to the agent once it is set up."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._add_middleware)

    def _add_middleware(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(InvokeModelStage, self._send)

    async def _send(
        self, context: InvokeModelContext, next_fn: Callable[[InvokeModelContext], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """Passes the compacted messages on; Strands calls `reduce_context` if they are too long even so."""
        whole = _whole_list(context)
        sent = await self._conversation(context.agent).aprepare(whole)
        async for event in next_fn(context.replace(messages=_to_send(sent, whole, context.messages))):
            yield event

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Does nothing: the agent keeps its messages."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Compacts what the next model call sends after an overflow; raises it again if that is not possible."""
        if e is not None and self._conversation(agent).recover(e, agent.messages) is None:
            raise e

    def recall_tools(self) -> list[PythonAgentTool]:
        """Returns tools to search and read everything in the conversation that calls them, archived or not."""
        return [self._recall_tool(tool) for tool in RECALL_TOOLS]

    def _recall_tool(self, tool: Tool) -> PythonAgentTool:
        async def run(use: Any, *, agent: Agent, **state: Any) -> dict[str, Any]:
            text = await self.conversations.answer_recall(self._key(agent), tool.name, use["input"])
            return {"toolUseId": use["toolUseId"], "status": "success", "content": [{"text": text}]}

        spec = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
        return PythonAgentTool(tool.name, spec, run)

    def _conversation(self, agent: Agent) -> AgentConversation:
        config: Any = agent.model.get_config()
        return self.conversations.conversation(
            self._key(agent),
            model=config.get("model_id") if isinstance(config, dict) else None,
            window=agent.model.context_window_limit,
            system=agent.system_prompt,
            tools=agent.tool_registry.get_all_tool_specs,
            format="strands",
        )

    def _key(self, agent: Agent) -> str:
        managed = getattr(getattr(agent, "_session_manager", None), "session_id", None)
        if (session := self.session_id or managed) is None:
            session = "conversation" if self.conversations.stored else f"agent-{id(agent)}"
        return session if agent.agent_id == _DEFAULT_ID else f"{session}/{agent.agent_id}"


def _whole_list(context: InvokeModelContext) -> list[Any]:
    """Returns the agent's own messages, unless another middleware has rewritten more than the newest one.

    The newest one may have content that is made anew for each call, as by a context injector: it is not part of the
    conversation.
    """
    own: list[Any] = context.agent.messages
    return own if context.messages[:-1] == own[:-1] and len(context.messages) == len(own) else context.messages


def _to_send(sent: Sequence[Any], whole: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Returns the messages as copies, those of the agent as the other middleware has left them, and in turns.

    Bedrock refuses two messages of one role in a row, as notes and the next message of the user are.
    """
    copies = {id(message): shown for message, shown in zip(whole, given, strict=True)}
    shown: list[Any] = []
    for message in sent:
        current = copies.get(id(message)) or copy.deepcopy(message)
        if shown and shown[-1]["role"] == current["role"]:
            shown[-1] = shown[-1] | {"content": [*shown[-1]["content"], *current["content"]]}
        else:
            shown.append(current)
    return shown
