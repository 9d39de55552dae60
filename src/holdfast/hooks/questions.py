"""What hooks are asked around a compaction, and what they may answer (G7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from ..errors import InvalidInput
from ..view import Plan, Request
from .events import CompactionCompleted, CompactionEvent, Origin

if TYPE_CHECKING:
    from ..compaction import CompactionResult
    from ..types import Strategy


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction that is about to be: the trigger has fired, and nothing has been done yet."""

    session: str
    origin: Origin
    tokens: int
    request: Request
    """What a strategy is given; with it a hook can make a plan of its own."""
    strategy: Strategy
    """What would plan it."""
    lane: str | None = None
    budget: int | None = None
    instructions: str | None = None
    """The person's own, and what the hooks before this one have added."""


class Veto(msgspec.Struct, frozen=True):
    """Do not compact now."""

    why: str = ""

    def __post_init__(self) -> None:
        _must_be_text(self.why)


class Instructions(msgspec.Struct, frozen=True):
    """What the summary is to mind, beside what the person asked for."""

    text: str

    def __post_init__(self) -> None:
        _must_be_text(self.text)


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """The session goes on from a compacted context: what must be in it again is said now."""

    session: str
    origin: Origin
    tokens: int
    """Of the context as the compaction left it."""
    round: int
    lane: str | None = None
    source: Literal["compact"] = "compact"


def _must_be_text(given: object) -> None:
    if not isinstance(given, str):
        raise InvalidInput(f"What a hook has to say is a text, not {type(given).__name__}.")


if TYPE_CHECKING:
    Answer = Veto | Instructions | Plan | Strategy | None
    BeforeHook = Callable[[Before], Answer | Awaitable[Answer]]
    AfterHook = Callable[[CompactionCompleted, CompactionResult], object]
    StartHook = Callable[[SessionStart], str | Awaitable[str | None] | None]
    Listener = Callable[[CompactionEvent], object]
    """A plain function: it is told while others wait, and should not take long."""
