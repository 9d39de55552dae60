"""Agno: a model whose requests fit its window, for agents and teams.

    agent = Agent(model=compacting(OpenAIChat(id="gpt-5-mini"), window=200_000), tools=[...])

Agno has no strategy to replace: its `Compaction` folds finished runs only, and `CompressionManager` rewrites tool
results by a model. `compacting` therefore wraps the model: runs and sessions keep every message, and only the request
holds the compacted ones. It takes the place of both.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidInput
from ..messages import Message as NeutralMessage
from ..messages import Text, Tool, ToolCall, ToolResult
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, Shortcuts

try:
    from agno.models.base import Model
    from agno.models.message import Message
    from agno.run import RunContext
    from agno.tools import Function, Toolkit
except ModuleNotFoundError as problem:
    raise not_installed("agno") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["RecallTools", "compacting"]
_Wrapped = TypeVar("_Wrapped", bound=Model)


def compacting(
    model: _Wrapped,
    *,
    window: int | None = None,
    preset: PolicyLike = "holdfast",
    summarizer: SummarizerLike | None = None,
    store: StoreLike | None = None,
    listen: Callable[[CompactionEvent], object] | None = None,
) -> _Wrapped:
    """Returns a copy of the model that compacts what it sends; once more, if the prompt was still too long.

    `window` is the model's context window, by default that of Holdfast's catalog. With a `store` each session of an
    agent is a session of Holdfast with the same id; members of a team and other agents have one of their own.
    """
    conversations = AgentConversations(
        window=window, model=model.id, preset=preset, summarizer=summarizer, store=store, listen=listen
    )
    kind = type(model)
    wrapped = copy.copy(model)
    wrapped.__class__ = type(kind.__name__, (kind,), _methods(kind, conversations))
    return wrapped


def _methods(kind: type[Model], conversations: AgentConversations) -> dict[str, Any]:
    """Returns the methods of the wrapped class: Agno calls one of four for each request."""

    def invoke(self: Model, messages: list[Message], **request: Any) -> Any:
        conversation = _conversation(conversations, request)
        try:
            return kind.invoke(self, conversation.prepare(messages), **request)
        except Exception as problem:
            smaller = conversation.recover(problem, messages)
            if smaller is None:
                raise
        return kind.invoke(self, smaller, **request)

    async def ainvoke(self: Model, messages: list[Message], **request: Any) -> Any:
        conversation = _conversation(conversations, request)
        try:
            return await kind.ainvoke(self, await conversation.aprepare(messages), **request)
        except Exception as problem:
            smaller = await conversation.arecover(problem, messages)
            if smaller is None:
                raise
        return await kind.ainvoke(self, smaller, **request)

    def invoke_stream(self: Model, messages: list[Message], **request: Any) -> Iterator[Any]:
        conversation = _conversation(conversations, request)
        try:
            yield from kind.invoke_stream(self, conversation.prepare(messages), **request)
            return
        except Exception as problem:
            smaller = conversation.recover(problem, messages)
            if smaller is None:
                raise
        yield from kind.invoke_stream(self, smaller, **request)

    async def ainvoke_stream(self: Model, messages: list[Message], **request: Any) -> AsyncIterator[Any]:
        conversation = _conversation(conversations, request)
        try:
            async for chunk in kind.ainvoke_stream(self, await conversation.aprepare(messages), **request):
                yield chunk
            return
        except Exception as problem:
            smaller = await conversation.arecover(problem, messages)
            if smaller is None:
                raise
        async for chunk in kind.ainvoke_stream(self, smaller, **request):
            yield chunk

    methods = (invoke, ainvoke, invoke_stream, ainvoke_stream)
    return {method.__name__: method for method in methods} | {"conversations": conversations}


def _conversation(conversations: AgentConversations, request: dict[str, Any]) -> AgentConversation:
    run = request.get("run_response")
    return conversations.conversation(
        conversation_key(run), tools=lambda: request.get("tools") or [], format="agno", shortcuts=_SHORTCUTS
    )


def _read(message: Message) -> NeutralMessage | None:
    text, thoughts = message.content, (message.reasoning_content, message.redacted_reasoning_content)
    media = message.images, message.audio, message.videos, message.files
    if any(thoughts) or any(media) or not isinstance(text, str | None):
        return None
    if message.role == "tool":
        return NeutralMessage("tool", (ToolResult(message.tool_call_id or "", (Text(text or ""),)),))
    if message.role != "assistant":
        return None
    calls = (
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.tool_calls or ()
    )
    return NeutralMessage("assistant", (*([Text(text)] if text else ()), *calls))


_SHORTCUTS = Shortcuts(read=_read)


def conversation_key(run: Any) -> str:
    """Returns the session's id, and for a member of a team the id of the member as well."""
    session = str(getattr(run, "session_id", None) or "conversation")
    member = getattr(run, "agent_id", None) if getattr(run, "parent_run_id", None) else None
    return f"{session}/{member}" if member else session


class RecallTools(Toolkit):
    """Tools to search and read everything in the conversation that calls them, archived or not."""

    def __init__(self, model: Model) -> None:
        conversations = getattr(model, "conversations", None)
        if not isinstance(conversations, AgentConversations):
            raise InvalidInput("RecallTools needs the model that compacting() returned: pass it here, too.")
        super().__init__(name="recall", tools=[_recall_tool(conversations, tool) for tool in RECALL_TOOLS])


def _recall_tool(conversations: AgentConversations, tool: Tool) -> Function:
    def run(run_context: RunContext, **arguments: Any) -> str:
        return conversations.answer_recall_blocking(str(run_context.session_id), tool.name, arguments)

    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        entrypoint=run,
        skip_entrypoint_processing=True,
    )
