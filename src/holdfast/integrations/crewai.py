"""CrewAI: an LLM whose requests fit its window, for agents, crews and flows.

    agent = Agent(role="Clerk", goal="...", backstory="...", llm=compacting(LLM(model="gpt-5-mini"), window=200_000))

With `respect_context_window` CrewAI replaces a conversation that overflowed by a summary of all of it, made by the
model in several calls. `compacting` wraps the LLM instead: the agent keeps every message, and only the request holds
the compacted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..errors import InvalidInput
from ..messages import Json, Tool
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    from crewai import BaseLLM
    from crewai.tools import BaseTool
    from pydantic import Field, create_model
except ModuleNotFoundError as problem:
    raise not_installed("crewai") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["compacting", "recall_tools"]
_FORMAT = "openai-chat"
_Wrapped = TypeVar("_Wrapped", bound=BaseLLM)


def compacting(
    llm: _Wrapped,
    *,
    window: int | None = None,
    preset: PolicyLike = "holdfast",
    summarizer: SummarizerLike | None = None,
    store: StoreLike | None = None,
    listen: Callable[[CompactionEvent], object] | None = None,
) -> _Wrapped:
    """Returns the LLM, which from now on compacts what it sends; once more, if the prompt was still too long.

    `window` is the model's context window, by default that of Holdfast's catalog. With a `store` each task of an agent
    is a session. Give `recall_tools` to the agent, so that it can search and read what was archived.
    """
    conversations = AgentConversations(
        window=window, model=llm.model, preset=preset, summarizer=summarizer, store=store, listen=listen
    )
    kind = type(llm)
    llm.__class__ = type(kind.__name__, (kind,), _methods(kind, _Calls(conversations)))
    return llm


class _Calls:
    """The conversations of an LLM, and the one of its last call: a tool of CrewAI does not know who calls it."""

    def __init__(self, conversations: AgentConversations) -> None:
        self._conversations = conversations
        self._newest = ""

    def conversation(self, tools: Any, request: Mapping[str, Any]) -> AgentConversation:
        self._newest = conversation_key(request.get("from_agent"), request.get("from_task"))
        return self._conversations.conversation(self._newest, tools=lambda: tools or [], format=_FORMAT)

    def answer_recall(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self._conversations.answer_recall_blocking(self._newest, name, arguments)


def _methods(kind: type[BaseLLM], calls: _Calls) -> dict[str, Any]:
    def call(self: BaseLLM, messages: Any, tools: Any = None, **request: Any) -> Any:
        if isinstance(messages, str):
            return kind.call(self, messages, tools, **request)
        conversation = calls.conversation(tools, request)
        try:
            return kind.call(self, conversation.prepare(messages), tools, **request)
        except Exception as problem:
            smaller = conversation.recover(problem, messages)
            if smaller is None:
                raise
        return kind.call(self, smaller, tools, **request)

    async def acall(self: BaseLLM, messages: Any, tools: Any = None, **request: Any) -> Any:
        if isinstance(messages, str):
            return await kind.acall(self, messages, tools, **request)
        conversation = calls.conversation(tools, request)
        try:
            return await kind.acall(self, await conversation.aprepare(messages), tools, **request)
        except Exception as problem:
            smaller = await conversation.arecover(problem, messages)
            if smaller is None:
                raise
        return await kind.acall(self, smaller, tools, **request)

    fields = {"__annotations__": {"holdfast": ClassVar[_Calls]}, "holdfast": calls}
    return {"call": call, "acall": acall, "__module__": __name__, **fields}


def conversation_key(agent: Any, task: Any) -> str:
    """Returns the id of the task, and that of the agent that works on it: others may help with the same task."""
    return "/".join(str(one.id) for one in (task, agent) if getattr(one, "id", None)) or "conversation"


class _RecallTool(BaseTool):
    """A tool to search or read everything in the conversation of an agent, archived or not."""

    name: str = ""
    description: str = ""
    calls: Any = Field(exclude=True)

    def _run(self, **arguments: Any) -> str:
        return str(self.calls.answer_recall(self.name, arguments))


def recall_tools(llm: BaseLLM) -> list[BaseTool]:
    """Returns tools to search and read the conversation that the LLM was called in last, archived or not."""
    calls = getattr(llm, "holdfast", None)
    if not isinstance(calls, _Calls):
        raise InvalidInput("recall_tools needs the LLM that compacting() returned.")
    return [
        _RecallTool(name=tool.name, description=tool.description, args_schema=_arguments(tool), calls=calls)
        for tool in RECALL_TOOLS
    ]


_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool}


def _arguments(tool: Tool) -> Any:
    """Returns a pydantic model of the tool's parameters, which CrewAI requires."""
    properties: Json = tool.parameters["properties"]
    fields: dict[str, Any] = {}
    for name, schema in properties.items():
        kind, about = _TYPES[schema["type"]], Field(description=schema["description"])
        required = name in tool.parameters["required"]
        fields[name] = (
            (kind, about) if required else (kind | None, Field(default=None, description=schema["description"]))
        )
    return create_model(f"{tool.name}_arguments", **fields)
