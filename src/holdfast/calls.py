"""What a strategy may ask of a model, what may come back, and what is reported while it waits.

Strategies do no I/O: they yield calls and receive answers. A failure is an answer too, because what to try
next (strip media, shrink the input) only the strategy knows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from .budget import not_negative, positive
from .errors import InvalidLimit
from .messages import Json, Media, Tool, ToolCall
from .tokens import Usage

Finish = Literal["stop", "length", "tool_call", "refused"]
"""Why a reply ended: it was done, cut off, it called a tool, or the provider would not let it speak."""

FailureKind = Literal[
    "overflow", "media", "timeout", "auth", "transport", "request", "answer", "call_budget", "no_model"
]
"""The prompt is too long; media are not taken; too slow; key or quota; may pass if tried again; refused as it is;
what came back is no summary; too many calls for one compaction; there is nobody to ask."""

R = TypeVar("R")


class ModelCall(msgspec.Struct, frozen=True):
    """One question to a model, without tools."""

    prompt: str
    system: str = ""
    max_tokens: int | None = None
    """The longest reply; None leaves it to the provider."""
    temperature: float | None = None
    media: tuple[Media, ...] = ()
    """Images that go along with the prompt, for models that can see."""
    purpose: str = "summary"
    """What it is for, in a word or two, for progress and records."""


class Reply(msgspec.Struct, frozen=True):
    """What a model answered."""

    text: str
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str | None = None
    """The model that answered, by the provider's own word."""


class Failure(msgspec.Struct, frozen=True):
    """No answer, and why."""

    kind: FailureKind
    why: str = ""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""
    window: int | None = None
    """The model's real window, where its error tells."""

    @property
    def may_pass(self) -> bool:
        """Is it worth asking the same again?"""
        return self.kind in ("transport", "timeout")


Answer = Reply | Failure
Steps = Generator[tuple[ModelCall, ...], tuple[Answer, ...], R]
"""Work that asks in batches: yields calls, receives their answers in the same order, returns its result."""


class Model(Protocol):
    """Anything that answers calls. It reports the reply as it comes, raises nothing, and can be cancelled."""

    @property
    def name(self) -> str:
        """As a person would choose it: `anthropic:claude-…`."""
        ...

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer: ...


class StepCall(msgspec.Struct, frozen=True):
    """One step of an agent: the conversation as it stands, and the tools that may be called."""

    messages: Sequence[Json]
    """In the model's own format, valid for it."""
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None


class StepReply(msgspec.Struct, frozen=True):
    """What the model said in a step, and what it wants done."""

    messages: tuple[Json, ...]
    """To be appended as they are: one message, or the several items of a format that has them."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Arguments that are no whole JSON object stay the text that they are."""
    finish: Finish = "stop"
    usage: Usage | None = None
    model: str | None = None


DeltaKind = Literal["text", "reasoning", "call"]


class Delta(msgspec.Struct, frozen=True):
    """The newest piece of a reply: of its text, of what the model thinks aloud, or the name of a tool it calls."""

    kind: DeltaKind
    text: str


class Stepper(Protocol):
    """A model that an agent can talk to. It raises nothing, and can be cancelled."""

    @property
    def name(self) -> str: ...

    @property
    def format(self) -> str:
        """The wire format of its messages."""
        ...

    async def step(self, call: StepCall, on_delta: Callable[[Delta], None]) -> StepReply | Failure: ...


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How patient one compaction is with its model."""

    timeout: float = 120.0
    """Seconds without a sign of life, for one attempt."""
    deadline: float = 600.0
    """Seconds for all calls of one compaction, waits included."""
    attempts: int = 3
    """How often the same call is made, in all, where trying again may help."""
    backoff: float = 1.0
    """Seconds before the second attempt; doubled each time, with jitter."""
    longest_wait: float = 60.0
    """No wait is longer; a provider that asks for more has failed."""
    max_calls: int = 24
    """Calls of one compaction, retries apart."""
    concurrency: int = 4

    def __post_init__(self) -> None:
        for name in ("attempts", "max_calls", "concurrency"):
            positive(name, getattr(self, name))
        for name in ("timeout", "deadline"):
            if not (seconds := getattr(self, name)) > 0:
                raise InvalidLimit(f"{name} must be a number of seconds above 0, not {seconds!r}.")
        not_negative("backoff", int(self.backoff * 1000))
        not_negative("longest_wait", int(self.longest_wait * 1000))


NoticeKind = Literal["calling", "delta", "waiting", "answered", "failed"]


class Notice(msgspec.Struct, frozen=True):
    """Something that a person who waits would like to know."""

    kind: NoticeKind
    purpose: str
    call: int = 0
    """Which call of the compaction, from 1."""
    text: str = ""
    """The newest piece of the reply, or in words what happened."""
    characters: int = 0
    """Of the reply so far."""
    attempt: int = 1
    seconds: float = 0.0
    """How long it took, or how long the wait will be."""
