"""Google ADK: a plugin that keeps what an app's agents send inside the window, and a summarizer of events.

    app = App(name="harbour", root_agent=agent, plugins=[HoldfastPlugin(window=200_000)])

The session keeps every event; only the request holds the compacted contents. It takes the place of
`EventsCompactionConfig` with `LlmEventSummarizer` and of `ContextFilterPlugin`. `HoldfastSummarizer` is for apps that
keep ADK's own compaction of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compaction import acompact
from ..messages import (
    Message,
    Part,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    decode_all,
    is_framed,
    strip_frame,
    to_json,
)
from ..messages.frameworks import not_installed
from ..triggers import always
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, Shortcuts

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions, EventCompaction
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ModuleNotFoundError as problem:
    raise not_installed("google-adk") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastPlugin", "HoldfastSummarizer", "conversation_key"]
_FORMAT = "gemini"


class HoldfastPlugin(BasePlugin):
    """Compacts what the agents of an app send to their models; the events of the session stay complete.

    `window` is the model's context window, by default that of Holdfast's catalog. With a `store` each session of ADK
    is a session of Holdfast with the same id, and each sub-agent or branch has one of its own. With `recall` every
    agent gets tools to search and read what was archived.
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
        name: str = "holdfast",
    ) -> None:
        super().__init__(name=name)
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )
        self._tools = [_RecallTool(self.conversations, tool) for tool in RECALL_TOOLS] if recall else []

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Replaces the contents of the request by those to send, and adds the recall tools."""
        llm_request.append_tools(list(self._tools))
        conversation = self._conversation(callback_context, llm_request)
        llm_request.contents = await conversation.aprepare(llm_request.contents)

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Records the provider's token counts."""
        if llm_response.usage_metadata is not None and not llm_response.partial:
            conversation = self.conversations.conversation(conversation_key(callback_context))
            conversation.report(llm_response.usage_metadata)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Compacts further after an overflow, and asks the model once more."""
        conversation = self._conversation(callback_context, llm_request)
        smaller = await conversation.arecover(error, llm_request.contents)
        if smaller is None:
            return None
        llm_request.contents = smaller
        agent: Any = callback_context.get_invocation_context().agent
        async for response in agent.canonical_model.generate_content_async(llm_request):
            return response
        return None

    def _conversation(self, context: CallbackContext, request: LlmRequest) -> AgentConversation:
        config = request.config
        return self.conversations.conversation(
            conversation_key(context),
            model=request.model,
            system=str(config.system_instruction) if config.system_instruction else None,
            tools=lambda: [_declaration(tool) for tool in config.tools or ()],
            format=_FORMAT,
            shortcuts=_SHORTCUTS,
        )


def conversation_key(context: Any) -> str:
    """Returns a name for the conversation of an agent: the session's id, and for sub-agents and branches their own."""
    running = context.get_invocation_context()
    place = running.branch or (running.agent.name if running.agent is not running.agent.root_agent else "")
    return f"{running.session.id}/{place}" if place else str(running.session.id)


def as_content(payload: Any) -> types.Content:
    return types.Content.model_validate(payload)


def _are_equal(some: Sequence[types.Content], others: Sequence[types.Content]) -> bool:
    """Compares contents, of which ADK copies the parts for each request but not what these hold.

    The comparison of the classes themselves takes several times as long.
    """
    return all(
        one.role == other.role
        and [part.__dict__ for part in one.parts or ()] == [part.__dict__ for part in other.parts or ()]
        for one, other in zip(some, others, strict=True)
    )


def _read(content: types.Content) -> Message | None:
    role: Role = "assistant" if content.role == "model" else "user"
    texts: list[Part] = []
    pairs: list[Part] = []  # calls or results, by their number where ADK has removed the ids
    for part in content.parts or ():
        match {key: value for key, value in part.__dict__.items() if value is not None}:
            case {"text": text, **rest} if not rest:
                texts.append(Text(text))
            case {"function_call": call, **rest} if not rest:
                pairs.append(ToolCall(call.id or f"{call.name} {len(pairs)}", call.name, call.args or {}))
            case {"function_response": result, **rest} if not rest and not result.parts:
                role = "tool"
                answer = Text(to_json(result.response))
                pairs.append(ToolResult(result.id or f"{result.name} {len(pairs)}", (answer,)))
            case _:
                return None
    return Message(role, (*texts, *pairs))


_SHORTCUTS = Shortcuts(as_content, _are_equal, _read)


def _declaration(tool: Any) -> Any:
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(tool, types.Tool) else str(tool)


class _RecallTool(BaseTool):
    """A tool to search or read everything in the conversation that calls it, archived or not."""

    def __init__(self, conversations: AgentConversations, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._conversations = conversations
        self._declaration = types.FunctionDeclaration(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
        )

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self._declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await self._conversations.answer_recall(conversation_key(tool_context), self.name, args)


class HoldfastSummarizer(BaseEventsSummarizer):
    """Replaces ranges of events by notes of at most `max_tokens`, for an `EventsCompactionConfig`.

    Without a `summarizer` no model is called. The notes are a user message: a request must not begin with the model's.
    """

    def __init__(self, max_tokens: int = 2_000, *, summarizer: SummarizerLike | None = None) -> None:
        self._max_tokens = max_tokens
        self._summarizer = summarizer

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Returns an event that stands for the given ones; None if nothing would be saved."""
        contents = [content for event in events if (content := _content(event)) is not None]
        if not contents:
            return None
        result = await acompact(
            contents,
            budget=self._max_tokens,
            target=self._max_tokens,
            summarizer=self._summarizer,
            trigger=always,
            format=_FORMAT,
        )
        if not result.tokens_saved:
            return None
        text = "\n".join(line for message in decode_all(result.messages, _FORMAT)[0] for line in _lines(message))
        notes = types.Content(role="user", parts=[types.Part(text=text)])
        replaced = EventCompaction(
            start_timestamp=events[0].timestamp, end_timestamp=events[-1].timestamp, compacted_content=notes
        )
        return Event(author="user", invocation_id=Event.new_id(), actions=EventActions(compaction=replaced))


def _content(event: Event) -> types.Content | None:
    """Returns what an event adds to a request: the notes of an earlier compaction, or its own content."""
    replaced = event.actions.compaction
    content = event.content if replaced is None else replaced.compacted_content
    return content if content is not None and content.parts else None


def _lines(message: Message) -> list[str]:
    """Describes a message, for a page that holds several."""
    if is_framed(message):
        return [strip_frame(message)]
    lines = []
    for part in message.parts:
        match part:
            case Text():
                lines.append(f"{'User' if message.role == 'user' else 'Assistant'}: {part.text}")
            case ToolCall():
                lines.append(f"Assistant called {part.name}({part.arguments_json})")
            case ToolResult():
                lines.append(f"Result of {part.name or 'the call'}: {part.text}")
    return lines
