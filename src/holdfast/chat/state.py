"""Plain values about a chat: its state, the result of a compaction, and the error of a failed one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ..agent.events import AgentEvent, ErrorEvent, RunFinished
from ..agent.tools import Mode
from ..compaction import CompactionResult
from ..compaction.size import SizeCertainty
from ..errors import Outcome
from ..hooks.events import CompactionFailed
from ..strategies.fallback import USER_CHOICES

Activity = Literal["idle", "running", "compacting"]

Restraint = Literal["off", "until full"]
"""What holds automatic compaction back in one session."""


class ChatState(msgspec.Struct, frozen=True):
    """Session, model, activity and token usage of a chat."""

    session: str
    parent: str | None
    model: str
    preset: str
    activity: Activity
    auto: bool
    """True if automatic compaction is on."""
    tokens: int
    window: int
    known: SizeCertainty
    waiting: int
    """Prompts typed and not sent yet."""
    round: int
    """Number of compactions in the context."""
    folder: str
    mode: Mode = "ask"
    """Which calls need no approval, or are refused."""
    instructions: tuple[str, ...] = ()
    """Paths and sizes of the project instructions in the system prompt."""


class ChatCompactionResult(msgspec.Struct, frozen=True):
    """Outcome of a requested compaction, in plain values."""

    outcome: Outcome
    why: str
    tokens_before: int
    tokens_after: int
    continued: bool = False
    """True if a run was interrupted for it and continues."""
    kept: int = 0
    archived: int = 0
    fallback: str = ""
    """Strategy used instead of a summary because no model answered; else empty."""


def chat_compaction_result(result: CompactionResult, *, continued: bool) -> ChatCompactionResult:
    return ChatCompactionResult(
        outcome=result.outcome,
        why=result.why,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        continued=continued,
        kept=len(result.kept),
        archived=result.removed,
        fallback=result.fallback,
    )


class Interruption(msgspec.Struct):
    """Open from the request to compact until it is done; holds back the end of the interrupted run."""

    finished: RunFinished | None = None
    """End of the run that was interrupted, if any."""

    @property
    def should_continue(self) -> bool:
        """True if the run was aborted for the compaction before it was done."""
        return self.finished is not None and self.finished.status == "aborted"


CONTINUES_UNCHANGED = "the conversation continues unchanged"
"""Follows a failed compaction where the client cannot send requests."""


def may_succeed_again(outcome: str) -> bool:
    """Whether compacting again, or without a model, could succeed: not where no context would be small enough."""
    return outcome not in (Outcome.CANNOT_FIT, Outcome.NO_PROGRESS)


def compaction_error_event(
    event: AgentEvent, actions: Callable[[str], str] = lambda outcome: CONTINUES_UNCHANGED
) -> ErrorEvent | None:
    """Returns the error event for a failed compaction; None for other events and for aborted compactions.

    `actions` says what the client can do after this outcome.
    """
    if not isinstance(event, CompactionFailed) or event.outcome == Outcome.ABORTED:
        return None
    return ErrorEvent(compaction_failure_message(event.outcome, event.why, actions(event.outcome)))


def compaction_failure_reason(outcome: str, why: str) -> str:
    return why.removesuffix(USER_CHOICES).strip().rstrip(".:") or outcome.replace("_", " ")


def compaction_failure_message(outcome: str, why: str, actions: str) -> str:
    reason = compaction_failure_reason(outcome, why)
    return f"The compaction failed, and nothing was changed ({reason}): {actions}."


def without_choices(event: AgentEvent) -> AgentEvent:
    """Returns the event of a failed compaction without the choices that a client cannot make."""
    if not isinstance(event, CompactionFailed):
        return event
    return msgspec.structs.replace(event, why=event.why.removesuffix(USER_CHOICES))
