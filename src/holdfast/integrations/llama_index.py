"""LlamaIndex: a memory that keeps a chat inside the model's window, and an agent that does so within a run.

    memory = HoldfastMemory(window=200_000)
    agent = HoldfastFunctionAgent(llm=llm, tools=[...])
    answer = await agent.run("...", memory=memory)

LlamaIndex asks a memory for the messages of earlier runs only; what an agent does within a run is kept in its
scratchpad. `HoldfastFunctionAgent` therefore compacts both together before each model call. They take the place of
`Memory`, `ChatMemoryBuffer` and `ChatSummaryMemoryBuffer`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from operator import is_
from typing import Any

from ..errors import InvalidInput
from ..messages import Tool
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
    from llama_index.core.agent.workflow.agent_context import AgentContext
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import BaseMemory
    from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput
except ModuleNotFoundError as problem:
    raise not_installed("llama-index") from problem

__all__ = ["HoldfastFunctionAgent", "HoldfastMemory"]
_FORMAT = "llama_index"


class HoldfastMemory(BaseMemory):
    """Keeps every message, and returns a list that fits the window: compacted, valid, with the newest messages.

    With a `store` (a store or its address) the chat is a session with `session_id`, which another process continues.
    """

    session_id: str = Field(default_factory=lambda: str(uuid.uuid4()))
    window: int | None = None
    preset: str = "holdfast"
    store: Any = Field(default=None, exclude=True)
    summarizer: Any = Field(default=None, exclude=True)
    listen: Any = Field(default=None, exclude=True)
    _conversations: AgentConversations = PrivateAttr()
    _messages: list[ChatMessage] | None = PrivateAttr(default=None)
    _view: list[ChatMessage] | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        self._conversations = AgentConversations(
            window=self.window,
            preset=self.preset,
            summarizer=self.summarizer,
            store=self.store,
            listen=self.listen,
        )

    @classmethod
    def class_name(cls) -> str:
        return "HoldfastMemory"

    @classmethod
    def from_defaults(cls, **options: Any) -> HoldfastMemory:
        return cls(**options)

    @property
    def conversation(self) -> AgentConversation:
        """The chat as Holdfast follows it."""
        return self._conversations.conversation(self.session_id, format=_FORMAT)

    def get_all(self) -> list[ChatMessage]:
        """Returns every message, also those that are no longer sent."""
        return list(self._stored())

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Returns the messages to send; the same ones until a message is added."""
        if self._view is None:
            self._view = self.conversation.prepare(self._stored()) if self._stored() else []
        return list(self._view)

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self._set([*self._stored(), *messages])

    def set(self, messages: list[ChatMessage]) -> None:
        self._set(list(messages))

    def reset(self) -> None:
        """Starts an empty chat; a stored session stays in the store."""
        self._set([])
        self.session_id = str(uuid.uuid4())

    def _set(self, messages: list[ChatMessage]) -> None:
        self._messages, self._view = messages, None
        if messages and self._conversations.stored:
            self.get()  # durable before the caller continues

    def _stored(self) -> list[ChatMessage]:
        """Returns the messages; at first those that the store has."""
        if self._messages is None:
            self._messages = self._conversations.logged_messages(self.session_id)
        return self._messages

    def whole_list(self, shown: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Returns all messages if these are the ones that `get` returned; else these, which something has changed."""
        unchanged = self._view is not None and len(shown) == len(self._view) and all(map(is_, shown, self._view))
        return self.get_all() if unchanged else list(shown)

    def recall_tools(self) -> list[AsyncBaseTool]:
        """Returns tools to search and read everything in the chat, archived or not."""
        return [_RecallTool(self, tool) for tool in RECALL_TOOLS]


class HoldfastFunctionAgent(FunctionAgent):
    """A `FunctionAgent` whose model calls fit the window, however long a run is; pass a `HoldfastMemory` to `run`."""

    async def take_step(
        self, ctx: AgentContext, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        """Takes a step with compacted messages; once more, compacted further, if they were still too long."""
        if not isinstance(memory, HoldfastMemory):
            raise InvalidInput("HoldfastFunctionAgent needs a HoldfastMemory: pass one as memory= to run().")
        scratchpad: list[ChatMessage] = await ctx.store.get(self.scratchpad_key, default=[])
        system = next((place for place, message in enumerate(llm_input) if message.role != "system"), len(llm_input))
        given = [*llm_input[:system], *memory.whole_list(llm_input[system:]), *scratchpad]
        conversation = memory.conversation
        try:
            return await self._step(ctx, await conversation.aprepare(given), tools, memory)
        except Exception as problem:
            smaller = await conversation.arecover(problem, given)
            if smaller is None:
                raise
        return await self._step(ctx, smaller, tools, memory)

    async def _step(
        self, ctx: AgentContext, sent: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: HoldfastMemory
    ) -> AgentOutput:
        """Takes a step of `FunctionAgent` with exactly these messages, and adds its reply to the scratchpad."""
        scratchpad: list[ChatMessage] = await ctx.store.get(self.scratchpad_key, default=[])
        await ctx.store.set(self.scratchpad_key, [])
        try:
            output = await super().take_step(ctx, sent, tools, memory)
        finally:
            added: list[ChatMessage] = await ctx.store.get(self.scratchpad_key, default=[])
            await ctx.store.set(self.scratchpad_key, [*scratchpad, *added])
        if usage := _usage(output.raw):
            memory.conversation.report(usage)
        return output


def _usage(raw: Any) -> Any:
    return raw.get("usage") if isinstance(raw, dict) else None


class _RecallTool(AsyncBaseTool):
    """A tool to search or read everything in the chat, archived or not."""

    def __init__(self, memory: HoldfastMemory, tool: Tool) -> None:
        self._memory = memory
        self._metadata = _RecallMetadata(tool.description, tool.name)
        self._metadata.parameters = tool.parameters

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def call(self, *args: Any, **arguments: Any) -> ToolOutput:
        memory = self._memory
        return self._output(
            memory._conversations.answer_recall_blocking(memory.session_id, self._metadata.get_name(), arguments),
            arguments,
        )

    async def acall(self, *args: Any, **arguments: Any) -> ToolOutput:
        memory = self._memory
        text = await memory._conversations.answer_recall(memory.session_id, self._metadata.get_name(), arguments)
        return self._output(text, arguments)

    def _output(self, text: str, arguments: Any) -> ToolOutput:
        return ToolOutput(content=text, tool_name=self._metadata.get_name(), raw_input=arguments, raw_output=text)


class _RecallMetadata(ToolMetadata):
    """Metadata with a JSON schema instead of a pydantic class."""

    parameters: dict[str, Any]

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.parameters
