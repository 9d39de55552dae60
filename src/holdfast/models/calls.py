"""Model calls, replies, failures, limits and progress notices.

Strategies do no I/O: they yield calls and receive answers. A failure is an answer too, because only the
strategy knows what to try next (strip media, shrink the input).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from ..errors import InvalidLimit
from ..messages import Json, Media, Tool, ToolCall
from ..messages.json_text import decodable
from ..tokens import Usage
from ..tokens.budget import require_not_negative, require_positive

Finish = Literal["stop", "length", "tool_call", "refused"]
"""Reason a reply ended: complete, cut off at the limit, a tool call, or refused by the provider."""
FailureKind = Literal[
    "overflow", "media", "timeout", "auth", "transport", "request", "answer", "call_budget", "no_model"
]
"""Prompt too long; media not accepted; time-out; key or quota; transient error; invalid request; answer is not a
summary; too many calls in one compaction; no model configured."""
_FAILURE_CLAUSES: dict[FailureKind, str] = {
    "overflow": "the prompt is too long for the model",
    "media": "the model does not accept an image or a file",
    "timeout": "the model did not answer in time",
    "auth": "the provider refused the key",
    "transport": "no answer from the model",
    "request": "the provider rejected the request",
    "answer": "no usable summary",
    "call_budget": "the compaction needs too many calls",
    "no_model": "",
}
R = TypeVar("R")


class ModelCall(msgspec.Struct, frozen=True):
    """One model call without tools."""

    prompt: str
    system: str = ""
    max_tokens: int | None = None
    """Longest reply in tokens; None for the provider's default."""
    temperature: float | None = None
    media: tuple[Media, ...] = ()
    """Images sent with the prompt, for vision models."""
    purpose: str = "summary"
    """Purpose in a word or two, for progress notices and logs."""
    schema: Json | None = None
    """JSON schema of the reply, for providers with structured output; others ignore it and answer the prompt."""


class Reply(msgspec.Struct, frozen=True):
    """A model's answer."""

    text: str
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str | None = None
    """Model id as reported by the provider."""


class Failure(msgspec.Struct, frozen=True):
    """A failed call, with its kind and reason."""

    kind: FailureKind
    why: str = ""
    retry_after: float | None = None
    """Seconds to wait, as requested by the provider."""
    window: int | None = None
    """The model's context window, if the error states it."""

    @property
    def reason(self) -> str:
        """The failure as a clause for people."""
        clause = _FAILURE_CLAUSES.get(self.kind, "")
        return f"{clause}: {self.why}" if clause and self.why else clause or self.why

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may succeed on retry."""
        return self.kind in ("transport", "timeout")


Answer = Reply | Failure
Steps = Generator[tuple[ModelCall, ...], tuple[Answer, ...], R]
"""A generator that yields batches of calls, receives their answers in the same order, and returns its result."""


class Model(Protocol):
    """Answers model calls. Reports the reply as it streams; returns failures instead of raising; can be cancelled."""

    @property
    def name(self) -> str:
        """Name as the user gives it: `anthropic:claude-…`."""
        ...

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        """Answers one call: a reply, or a failure."""
        ...


class StepCall(msgspec.Struct, frozen=True):
    """One step of an agent: the conversation so far, and the tools that the model may call."""

    messages: Sequence[Json]
    """In the model's wire format."""
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None


class StepReply(msgspec.Struct, frozen=True):
    """The model's reply in one step: text and tool calls."""

    messages: tuple[Json, ...]
    """To append unchanged: one message, or the items of a format that has several."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Arguments that are not a complete JSON object stay text."""
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str | None = None


ReplyDeltaKind = Literal["text", "reasoning", "call"]


class ReplyDelta(msgspec.Struct, frozen=True):
    """A streamed piece of a reply: of its text or its reasoning, or the name of a called tool."""

    kind: ReplyDeltaKind
    text: str


class ChatModel(Protocol):
    """A model with tools, for an agent. Returns failures instead of raising; can be cancelled."""

    @property
    def name(self) -> str:
        """Name as the user gives it: `anthropic:claude-…`."""
        ...

    @property
    def format(self) -> str:
        """Wire format of its messages."""
        ...

    async def step(self, call: StepCall, on_delta: Callable[[ReplyDelta], None]) -> StepReply | Failure:
        """Answers one step: a reply with text and tool calls, or a failure."""
        ...


@decodable
class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time-outs, retries and concurrency of the model calls of one compaction."""

    timeout: float = 120.0
    """Seconds without a new piece of the reply, per attempt."""
    deadline: float = 600.0
    """Seconds for all calls of one compaction, waits included."""
    attempts: int = 3
    """Attempts per call, the first included, if the failure is retryable."""
    backoff: float = 1.0
    """Seconds before the second attempt; doubled each time, with jitter."""
    longest_wait: float = 60.0
    """Longest wait in seconds; if the provider asks for more, the call fails."""
    max_calls: int = 24
    """Calls per compaction, not counting retries."""
    concurrency: int = 4

    def __post_init__(self) -> None:
        for name in ("attempts", "max_calls", "concurrency"):
            require_positive(name, getattr(self, name))
        for name in ("timeout", "deadline"):
            if not (seconds := getattr(self, name)) > 0:
                raise InvalidLimit(f"{name} must be a number of seconds above 0, not {seconds!r}.")
        require_not_negative("backoff", int(self.backoff * 1000))
        require_not_negative("longest_wait", int(self.longest_wait * 1000))


RETRY_SECONDS = 600
"""Seconds for which an agent's failed step is retried."""
_MANY_ATTEMPTS = 1_000


def retry_limits(seconds: float) -> Limits:
    """Returns the limits of an agent's step that is retried for so many seconds, however often."""
    return Limits(attempts=_MANY_ATTEMPTS, longest_wait=seconds, deadline=seconds)


NoticeKind = Literal["calling", "delta", "waiting", "answered", "failed"]


class Notice(msgspec.Struct, frozen=True):
    """A progress notice about a model call."""

    kind: NoticeKind
    purpose: str
    call: int = 0
    """Number of the call within the compaction, from 1."""
    text: str = ""
    """Newest piece of the reply, or a description of what happened."""
    characters: int = 0
    """Length of the reply so far."""
    attempt: int = 1
    seconds: float = 0.0
    """Duration of the call, or of the wait."""
