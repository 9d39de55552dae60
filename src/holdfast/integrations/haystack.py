"""Haystack: a chat generator that compacts what an agent sends, and a `Compactor` for Haystack's `CompactionHook`.

    agent = Agent(chat_generator=HoldfastChatGenerator(OpenAIChatGenerator(), window=200_000), tools=[...])

The generator leaves the messages of the agent whole. The compactor takes the place of `SlidingWindowCompactor`,
`ToolResultPruningCompactor` and `SummarizationCompactor` where the agent's own messages are to be shortened.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..compaction import acompact, compact
from ..messages import Tool as ToolDefinition
from ..messages.frameworks import not_installed
from ..triggers import always
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    from haystack import component, default_from_dict, default_to_dict
    from haystack.dataclasses import ChatMessage
    from haystack.tools.tool import Tool
    from haystack.tools.utils import flatten_tools_or_toolsets
except ModuleNotFoundError as problem:
    raise not_installed("haystack") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastChatGenerator", "HoldfastCompactor"]


@component
class HoldfastChatGenerator:
    """Wraps a chat generator: sends compacted messages, once more if they are too long even so.

    With a `store` the messages are logged in the session `session_id`; without, each thread or task that calls the
    generator has a conversation of its own.
    """

    def __init__(
        self,
        chat_generator: Any,
        *,
        window: int | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        session_id: str | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.chat_generator = chat_generator
        self.session_id = session_id
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )

    def warm_up(self) -> None:
        """Warms up the wrapped generator."""
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, **options: Any) -> dict[str, Any]:
        """Calls the wrapped generator with compacted messages."""
        conversation = self._conversation(tools)
        given = options if tools is None else options | {"tools": tools}
        try:
            reply: dict[str, Any] = self.chat_generator.run(messages=conversation.prepare(messages), **given)
        except Exception as problem:
            smaller = conversation.recover(problem, messages)
            if smaller is None:
                raise
            reply = self.chat_generator.run(messages=smaller, **given)
        return reply

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None, **options: Any) -> dict[str, Any]:
        """`run` for asynchronous pipelines."""
        conversation = self._conversation(tools)
        given = options if tools is None else options | {"tools": tools}
        sent = await conversation.aprepare(messages)
        try:
            reply: dict[str, Any] = await self.chat_generator.run_async(messages=sent, **given)
        except Exception as problem:
            smaller = await conversation.arecover(problem, messages)
            if smaller is None:
                raise
            reply = await self.chat_generator.run_async(messages=smaller, **given)
        return reply

    def recall_tools(self) -> list[Tool]:
        """Returns tools to search and read everything in the conversation that calls them."""
        return [self._recall_tool(tool) for tool in RECALL_TOOLS]

    def _conversation(self, tools: Any) -> AgentConversation:
        return self.conversations.conversation(
            self._key(),
            model=getattr(self.chat_generator, "model", None),
            tools=lambda: [tool.tool_spec for tool in flatten_tools_or_toolsets(tools)],
            format="haystack",
        )

    def _key(self) -> str:
        if self.session_id is not None:
            return self.session_id
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return (
            "conversation"
            if self.conversations.stored
            else f"run-{threading.get_ident() if task is None else id(task)}"
        )

    def _recall_tool(self, tool: ToolDefinition) -> Tool:
        def run(**arguments: Any) -> str:
            keys = list(self.conversations.keys())
            key = self._key() if self._key() in keys else keys[-1]
            return self.conversations.answer_recall_blocking(key, tool.name, arguments)

        return Tool(name=tool.name, description=tool.description, parameters=tool.parameters, function=run)


class HoldfastCompactor:
    """A compactor for `CompactionHook`: extractive notes and the newest steps, or a verified summary.

    It has no memory of its own: the notes of earlier compactions are read back from the messages.
    """

    def __init__(self, summarizer: SummarizerLike | None = None) -> None:
        self.summarizer = summarizer

    def compact(self, messages: list[ChatMessage], target_tokens: int, token_counter: Any) -> list[ChatMessage] | None:
        """Returns shorter messages that a provider accepts; None if they would not be shorter."""
        result = compact(messages, **self._options(target_tokens, token_counter))
        return list(result.messages) if result.tokens_saved else None

    async def compact_async(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: Any
    ) -> list[ChatMessage] | None:
        """`compact` for asynchronous agents."""
        result = await acompact(messages, **self._options(target_tokens, token_counter))
        return list(result.messages) if result.tokens_saved else None

    def _options(self, target: int, counter: Any) -> dict[str, Any]:
        def count(text: str) -> int:
            return int(counter.count([ChatMessage.from_user(text)])) if text else 0

        return {
            "budget": target,
            "target": target,
            "trigger": always,
            "estimator": count,
            "summarizer": self.summarizer,
            "format": "haystack",
        }

    def to_dict(self) -> dict[str, Any]:
        """Serializes the compactor; a summarizer must be a name."""
        written: dict[str, Any] = default_to_dict(self, summarizer=self.summarizer)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HoldfastCompactor:
        """Deserializes the compactor."""
        restored: HoldfastCompactor = default_from_dict(cls, data)
        return restored
