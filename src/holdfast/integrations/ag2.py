"""ag2: a middleware that keeps what an agent sends inside its model's window, and a strategy for its stored history.

    agent = Agent("clerk", config=config, tools=[...], middleware=[HoldfastEventMiddleware(window=200_000)])

The stream keeps every event; only the model call gets the compacted ones. It takes the place of `HistoryLimiter`,
`TokenLimiter` and the window policies. `HoldfastCompact` takes the place of `TailWindowCompact` and `SummarizeCompact`
in a `KnowledgeConfig`, for histories that are to be shortened themselves, between turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compaction import acompact
from ..messages import Message, Text, ToolCall, ToolResult
from ..messages.frameworks import not_installed
from ..messages.frameworks.ag2 import is_message
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, Shortcuts

try:
    from ag2 import Context
    from ag2.events import BaseEvent, ModelResponse, TextInput, ToolResultsEvent
    from ag2.knowledge import EventLogWriter, KnowledgeStore
    from ag2.middleware import BaseMiddleware
    from ag2.middleware.base import LLMCall
    from ag2.tools import tool as as_tool
except ModuleNotFoundError as problem:
    raise not_installed("ag2") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastCompact", "HoldfastEventMiddleware"]
_FORMAT = "ag2"


class HoldfastEventMiddleware:
    """Compacts what an agent sends to its model; the events of its stream stay complete.

    `window` is the model's context window, by default that of Holdfast's catalog for `model`. With a `store` each
    stream is a session with the stream's id. Pass `recall_tools` to the agent, so that it can search and read what was
    archived.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        model: str | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.conversations = AgentConversations(
            window=window, model=model, preset=preset, summarizer=summarizer, store=store, listen=listen
        )

    def __call__(self, event: BaseEvent, context: Context) -> BaseMiddleware:
        conversation = self.conversations.conversation(
            conversation_key(context),
            system="\n".join(context.prompt) or None,
            format=_FORMAT,
            shortcuts=_SHORTCUTS,
        )
        return _Compacting(event, context, conversation)

    @property
    def recall_tools(self) -> list[Any]:
        """Tools to search and read everything in the conversation that calls them, archived or not."""
        return _recall_tools(self.conversations)


class _Compacting(BaseMiddleware):
    def __init__(self, event: BaseEvent, context: Context, conversation: AgentConversation) -> None:
        super().__init__(event, context)
        self._conversation = conversation

    async def on_llm_call(self, call_next: LLMCall, events: Sequence[BaseEvent], context: Context) -> ModelResponse:
        """Calls the model with the compacted events; once more, compacted further, if they were still too long."""
        given = [event for event in events if is_message(event)]
        try:
            return await call_next(await self._conversation.aprepare(given), context)
        except Exception as problem:
            smaller = await self._conversation.arecover(problem, given)
            if smaller is None:
                raise
        return await call_next(smaller, context)


class HoldfastCompact:
    """A `CompactStrategy`: replaces a stream's history by notes and its newest events, within `max_tokens`.

    Events that are dropped are written to the agent's knowledge store first, as ag2's own strategies do.
    """

    def __init__(self, max_tokens: int, *, summarizer: SummarizerLike | None = None) -> None:
        self._max_tokens = max_tokens
        self._summarizer = summarizer

    async def compact(self, events: list[BaseEvent], context: Context, store: KnowledgeStore | None) -> list[BaseEvent]:
        """Returns the compacted history; the given one if it fits."""
        given = [event for event in events if is_message(event)]
        result = await acompact(
            given, budget=self._max_tokens, target=self._max_tokens, summarizer=self._summarizer, format=_FORMAT
        )
        if not result.tokens_saved:
            return events
        kept = set(map(id, result.messages))
        dropped = [event for event in given if id(event) not in kept]
        if store is not None:
            await EventLogWriter(store).persist_dropped(context.stream.id, dropped)
        return list(result.messages)


def _read(event: BaseEvent) -> Message | None:
    if isinstance(event, ModelResponse) and not event.files:
        calls = (ToolCall(call.id, call.name, call.arguments) for call in event.tool_calls.calls)
        return Message("assistant", (*([Text(event.content)] if event.content else ()), *calls))
    if isinstance(event, ToolResultsEvent):
        inputs = [part for result in event.results for part in result.result.parts]
        if all(type(part) is TextInput for part in inputs):
            texts = ((one.parent_id, tuple(Text(part.content) for part in one.result.parts)) for one in event.results)
            return Message("tool", tuple(ToolResult(call_id, content) for call_id, content in texts))
    return None


_SHORTCUTS = Shortcuts(read=_read)


def conversation_key(context: Context) -> str:
    """Returns the id of the stream; a sub-agent has a stream of its own."""
    return str(context.stream.id)


def _recall_tools(conversations: AgentConversations) -> list[Any]:
    """Returns the tools; ag2 passes arguments by the names of a function's parameters."""

    async def recall_search(
        context: Context,
        query: str,
        role: str | None = None,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        archived: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> str:
        filters = {"role": role, "tool": tool, "since": since, "until": until, "archived": archived}
        arguments = {"query": query, **filters, "limit": limit, "offset": offset}
        return await conversations.answer_recall(conversation_key(context), "recall_search", arguments)

    async def recall_read(context: Context, ref: str) -> str:
        return await conversations.answer_recall(conversation_key(context), "recall_read", {"ref": ref})

    functions = {function.__name__: function for function in (recall_search, recall_read)}
    return [
        as_tool(functions[tool.name], name=tool.name, description=tool.description, schema=tool.parameters)
        for tool in RECALL_TOOLS
    ]
