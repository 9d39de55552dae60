"""LiteLLM: a callback that keeps what is sent inside the model's window, for the SDK, the router and the proxy.

    litellm.callbacks = [HoldfastCallback(window=200_000)]

It compacts the messages of `acompletion` after a deployment is chosen and before the request is sent; the caller's list
stays whole. LiteLLM calls no such hook for its blocking `completion`: call `HoldfastCallback.completion` instead. It
takes the place of `trim_messages` and of `litellm.compress`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..messages import Json, encode_tools, to_json
from ..messages.frameworks import not_installed
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError as problem:
    raise not_installed("litellm") from problem

if TYPE_CHECKING:
    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastCallback", "conversation_key"]
_FORMAT = "openai-chat"
_COMPLETIONS = frozenset(("completion", "acompletion"))
_RETRIES = "context_window_fallback_dict"


class _SentMessages(list[Any]):
    """The list that a request is sent with, and what it was made of: LiteLLM hands it back if the request fails."""

    def __init__(self, sent: Sequence[Any], given: Sequence[Any], conversation: AgentConversation) -> None:
        super().__init__(sent)
        self.given = given
        self.conversation = conversation


class HoldfastCallback(CustomLogger):
    """Compacts what LiteLLM sends; after an overflow it compacts further, and LiteLLM sends the request once more.

    `window` is the model's context window, by default that of LiteLLM's model list or of Holdfast's catalog. With a
    `store` each conversation is a session. Conversations differ by `litellm_session_id`, by `session_id` in the
    metadata, or else by their first user message.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        super().__init__()
        self.conversations = AgentConversations(
            window=window, preset=preset, summarizer=summarizer, store=store, listen=listen
        )

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Replaces the messages of a chat completion by those to send."""
        given = kwargs.get("messages")
        if getattr(call_type, "value", call_type) not in _COMPLETIONS or not given:
            return None
        conversation = self._conversation(kwargs)
        sent = _SentMessages(await conversation.aprepare(given), given, conversation)
        model = kwargs.get("model")
        retries = {_RETRIES: {model: model}} if model and _RETRIES not in kwargs else {}  # once, after an overflow
        return {**kwargs, **retries, "messages": sent}

    async def async_post_call_success_deployment_hook(
        self, request_data: Mapping[str, Any], response: Any, call_type: Any
    ) -> None:
        """Records the provider's token counts."""
        sent, usage = request_data.get("messages"), getattr(response, "usage", None)
        if isinstance(sent, _SentMessages) and usage is not None:
            sent.conversation.report(usage)

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Compacts further after an overflow, in the list with which LiteLLM repeats the request."""
        sent = request_data.get("messages")
        if isinstance(sent, _SentMessages):
            smaller = await sent.conversation.arecover(exception, sent.given)
            sent[:] = sent if smaller is None else smaller

    def completion(self, **kwargs: Any) -> Any:
        """`litellm.completion` with compacted messages; once more, compacted further, if they were still too long."""
        given = kwargs.pop("messages")
        conversation = self._conversation({**kwargs, "messages": given})
        try:
            reply = litellm.completion(messages=conversation.prepare(given), **kwargs)
        except litellm.exceptions.BadRequestError as problem:
            smaller = conversation.recover(problem, given)
            if smaller is None:
                raise
            reply = litellm.completion(messages=smaller, **kwargs)
        if usage := getattr(reply, "usage", None):
            conversation.report(usage)
        return reply

    def _conversation(self, kwargs: Mapping[str, Any]) -> AgentConversation:
        model = str(kwargs.get("model", ""))
        return self.conversations.conversation(
            conversation_key(kwargs),
            model=model.rpartition("/")[2],
            window=litellm.model_cost.get(model, {}).get("max_input_tokens"),
            tools=lambda: kwargs.get("tools") or [],
            format=_FORMAT,
        )

    # -- recall ---------------------------------------------------------------------------------------

    @property
    def recall_tools(self) -> list[Json]:
        """Definitions of tools to search and read the conversation, for the `tools` of a request."""
        return encode_tools(_FORMAT, RECALL_TOOLS)

    async def answer(self, call: Any, **kwargs: Any) -> Json:
        """Runs a model's call of a recall tool; returns the message to append. `kwargs` are those of the request."""
        text = await self.conversations.answer_recall(conversation_key(kwargs), *_called(call))
        return _tool_message(call, text)

    def answer_blocking(self, call: Any, **kwargs: Any) -> Json:
        """`answer` for blocking callers."""
        text = self.conversations.answer_recall_blocking(conversation_key(kwargs), *_called(call))
        return _tool_message(call, text)


def conversation_key(kwargs: Mapping[str, Any]) -> str:
    """Returns a name for the conversation of a request: the session's id, or a digest of the first user message."""
    metadata = kwargs.get("metadata") or {}
    named = kwargs.get("litellm_session_id") or metadata.get("session_id") or kwargs.get("litellm_trace_id")
    if named:
        return str(named)
    messages = kwargs.get("messages") or ()
    first = next((message for message in messages if _role(message) == "user"), None)
    content = first.get("content") if isinstance(first, Mapping) else getattr(first, "content", None)
    return hashlib.blake2b(to_json(content).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)


def _called(call: Any) -> tuple[str, str]:
    """Returns the name and the arguments of a tool call."""
    return call.function.name, call.function.arguments


def _tool_message(call: Any, text: str) -> Json:
    return {"role": "tool", "tool_call_id": call.id, "content": text}
