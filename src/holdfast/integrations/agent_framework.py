"""Microsoft Agent Framework: a chat middleware and a compaction strategy.

    agent = Agent(client=client, tools=[...], middleware=[HoldfastChatMiddleware(window=200_000)])

The middleware sees every request of a run and leaves the messages of the agent whole; it also catches prompts that are
too long. The strategy goes wherever the framework takes a `CompactionStrategy` and rewrites the list that it is given,
in the place of `TruncationStrategy`, `SlidingWindowStrategy` and `SummarizationStrategy`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from ..compaction import acompact
from ..compaction.policy import find_policy
from ..messages import Message as NeutralMessage
from ..messages import Part, Role, Text, ToolCall, ToolResult
from ..messages import Tool as ToolDefinition
from ..messages.frameworks import not_installed
from ..tokens import Usage
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, Shortcuts

try:
    from agent_framework import ChatContext, ChatMiddleware, ChatResponse, FunctionTool, Message, ResponseStream
except ModuleNotFoundError as problem:
    raise not_installed("agent-framework") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastChatMiddleware", "HoldfastStrategy"]


class HoldfastChatMiddleware(ChatMiddleware):
    """Compacts the messages of each request; sends them once more if they are too long even so.

    With a `store` each session of the agent is a session of its own id; a run without a session is one named after
    `session_id`.
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
        self.session_id = session_id
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Calls the client with compacted messages."""
        whole = list(context.messages)
        conversation = self._conversation(context)
        context.messages = await conversation.aprepare(whole)
        try:
            await call_next()
        except Exception as problem:
            smaller = await conversation.arecover(problem, whole)
            if smaller is None:
                raise
            context.messages = smaller
            await call_next()
        if isinstance(context.result, ResponseStream):
            context.result = _recovering(context, call_next, conversation, whole)
        elif context.result is not None:
            _report(conversation, context.result)

    def recall_tools(self) -> list[FunctionTool]:
        """Returns tools to search and read the conversation of this agent, archived or not."""
        return [self._recall_tool(tool) for tool in RECALL_TOOLS]

    def _recall_tool(self, tool: ToolDefinition) -> FunctionTool:
        async def run(**arguments: Any) -> str:
            key = _run_key(self.session_id)
            keys = self.conversations.keys()
            return await self.conversations.answer_recall(key if key in keys else keys[-1], tool.name, arguments)

        return FunctionTool(name=tool.name, description=tool.description, func=run, input_model=tool.parameters)

    def _conversation(self, context: ChatContext) -> AgentConversation:
        options: Any = context.options or {}
        session = getattr(context.session, "session_id", None)
        return self.conversations.conversation(
            self.session_id or session or _run_key(None),
            model=options.get("model") or getattr(context.client, "model", None),
            system=options.get("instructions"),
            tools=lambda: [_definition(tool) for tool in options.get("tools") or ()],
            format="agent_framework",
            shortcuts=_SHORTCUTS,
        )


class HoldfastStrategy:
    """A compaction strategy of the framework: replaces messages near the window by notes and the newest steps.

    It has no memory of its own: the notes of earlier compactions are read back from the messages.
    """

    def __init__(
        self, window: int, *, preset: PolicyLike = "holdfast", summarizer: SummarizerLike | None = None
    ) -> None:
        self.window = window
        self.summarizer = summarizer
        self._preset = find_policy(preset)

    async def __call__(self, messages: list[Message]) -> bool:
        """Rewrites the list if it nears the window; returns whether it did."""
        result = await acompact(messages, preset=self._preset, window=self.window, summarizer=self.summarizer)
        if not result.tokens_saved:
            return False
        messages[:] = result.messages
        return True


def _recovering(
    context: ChatContext,
    call_next: Callable[[], Awaitable[None]],
    conversation: AgentConversation,
    whole: list[Message],
) -> ResponseStream[Any, Any]:
    """Returns the stream of the reply: the framework sends its request, and reports an overflow, when it is read."""

    stream: Any = context.result
    passed: list[Any] = []

    async def updates() -> AsyncIterator[Any]:
        nonlocal stream
        try:
            async for update in stream:
                passed.append(update)
                yield update
            return
        except Exception as problem:
            smaller = None if passed else await conversation.arecover(problem, whole)
            if smaller is None:
                raise
        context.messages = smaller
        await call_next()
        stream = context.result
        async for update in stream:
            passed.append(update)
            yield update

    async def finish(shown: Sequence[Any]) -> ChatResponse[Any]:
        reply: ChatResponse[Any] = await stream.get_final_response()
        _report(conversation, reply)
        unchanged = len(shown) == len(passed) and all(map(is_, shown, passed))
        return reply if unchanged else ChatResponse.from_updates(shown)

    return ResponseStream(updates(), finalizer=finish)


def _run_key(given: str | None) -> str:
    """Returns the key of the conversation in which this runs, where no session has an id."""
    return given or f"run-{id(asyncio.current_task())}"


def _read(message: Message) -> NeutralMessage | None:
    if message.role not in ("assistant", "tool"):
        return None
    role: Role = "assistant" if message.role == "assistant" else "user"
    parts: list[Part] = []
    for content in message.contents:
        if content.type == "text":
            parts.append(Text(content.text or ""))
        elif content.type == "function_call":
            parts.append(ToolCall(content.call_id or "", content.name or "", content.arguments or {}))
        elif content.type == "function_result" and all(item.type == "text" for item in content.items or ()):
            role = "tool"
            parts.append(ToolResult(content.call_id or "", (Text(str(content.result)),)))
        else:
            return None
    return NeutralMessage(role, tuple(parts))


_SHORTCUTS = Shortcuts(read=_read)


def _definition(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else repr(tool)


def _report(conversation: AgentConversation, reply: ChatResponse[Any]) -> None:
    details: Any = reply.usage_details or {}
    if details.get("input_token_count"):
        conversation.report(Usage(details["input_token_count"], details.get("output_token_count") or 0))
