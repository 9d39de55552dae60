"""Pydantic AI: a capability that keeps what an agent sends to its model inside the model's window.

    agent = Agent("openai:gpt-…", capabilities=[HoldfastCapability(window=200_000)])

The run's message history stays whole; only the request holds the compacted messages. It takes the place of a
`ProcessHistory` that cuts or summarizes, and of the compaction strategies of the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..messages import Message, Part, Text, ToolCall, ToolResult
from ..messages import Tool as ToolDefinition
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, Shortcuts

try:
    from pydantic_ai import RetryModelRequest, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.toolsets import FunctionToolset
except ModuleNotFoundError as problem:
    raise not_installed("pydantic-ai") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastCapability"]


class HoldfastCapability(AbstractCapability[Any]):
    """Compacts the messages of each model request; the history of the run stays complete.

    `window` is the model's context window, by default that of the catalog. Without a `summarizer` the ledger is kept,
    and no model is called. With a `store` each conversation is a session whose id is the run's `conversation_id`.
    With `recall` the agent gets tools to search and read what was archived.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        recall: bool = True,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )
        self.recall = recall

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replaces the messages of this attempt by the compacted ones."""
        conversation = self._conversation(ctx, request_context)
        request_context.messages = await conversation.aprepare(request_context.messages)
        return request_context

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Compacts further and asks for another attempt, once, if the messages were too long."""
        conversation = self._conversation(ctx, request_context)
        if await conversation.arecover(error, ctx.messages) is None:
            raise error
        raise RetryModelRequest from error

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Returns the tools to search and read the conversation."""
        return FunctionToolset([self._recall_tool(tool) for tool in RECALL_TOOLS]) if self.recall else None

    def _conversation(self, ctx: RunContext[Any], request: ModelRequestContext) -> AgentConversation:
        parameters = request.model_request_parameters
        return self.conversations.conversation(
            _key(ctx),
            model=request.model.model_name,
            system="\n\n".join(part.content for part in parameters.instruction_parts or ()) or None,
            tools=lambda: [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
                for tool in (*parameters.function_tools, *parameters.output_tools)
            ],
            format="pydantic_ai",
            shortcuts=_SHORTCUTS,
        )

    def _recall_tool(self, tool: ToolDefinition) -> Tool[Any]:
        async def run(ctx: RunContext[Any], **arguments: Any) -> str:
            return await self.conversations.answer_recall(_key(ctx), tool.name, arguments)

        return Tool.from_schema(run, tool.name, tool.description, tool.parameters, takes_ctx=True)


def _read(message: ModelMessage) -> Message | None:
    parts: list[Part] = []
    for part in message.parts:
        if type(part) is TextPart and not part.id:
            parts.append(Text(part.content))
        elif type(part) is ToolCallPart:
            parts.append(ToolCall(part.tool_call_id, part.tool_name, part.args or {}))
        elif type(part) is ToolReturnPart and isinstance(part.content, str):
            parts.append(ToolResult(part.tool_call_id, (Text(part.content),)))
        else:
            return None
    return Message("assistant" if message.kind == "response" else "tool", tuple(parts))


_SHORTCUTS = Shortcuts(read=_read)


def _key(ctx: RunContext[Any]) -> str:
    return ctx.conversation_id or ctx.run_id or "conversation"
