"""The size of a context: one value with its basis, made here and shown by everything that shows a size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ..tokens.budget import Utilization
from ..tokens.window import Window, WindowBasis
from ..triggers.limits import token_limit

if TYPE_CHECKING:
    from ..context import View
    from .policy import Policy

SizeCertainty = Literal["known", "estimated", "unknown"]
"""Whether a size was reported by the provider (`known`), includes an estimate of newer messages (`estimated`), or is
one as a whole after a compaction, until the next reply (`unknown`)."""
ESTIMATED = "estimated"


class Size(msgspec.Struct, frozen=True):
    """How large a context is, of what it consists, and how both are known."""

    tokens: int
    """All of it; overhead, notes and messages add up to this."""
    overhead: int
    """System prompt and tools."""
    notes: int
    messages: int
    basis: str
    """`reported with #412, estimated since`, or `estimated`."""
    window: int | None
    window_basis: WindowBasis
    threshold: int | None
    """Size above which the policy compacts; None if it does not count tokens."""
    target: int | None
    """Size that it compacts down to."""
    limit: int | None
    """Size above which no reply fits any more."""
    count: int
    """Messages since the newest compaction, and those that it left."""
    round: int
    """How many times the context was compacted."""
    checkpoint: str
    """Id of the compaction in force, empty if there is none."""
    estimated: int = 0
    """Tokens that are an estimate: those since the report, or all."""
    reply: int = 0
    """Tokens of the window that a reply may take."""
    remarks: tuple[str, ...] = ()
    """Reports of the provider that were ignored, and why."""

    @property
    def is_compacted(self) -> bool:
        """Whether a compaction is in force."""
        return bool(self.checkpoint)

    @property
    def known(self) -> bool:
        """Whether the tokens are based on the provider's report, not on an estimate alone."""
        return self.basis != ESTIMATED

    @property
    def certainty(self) -> SizeCertainty:
        """How the size is known, in one word."""
        if not self.known:
            return "unknown" if self.is_compacted else "estimated"
        return "estimated" if self.estimated else "known"

    @property
    def utilization(self) -> float:
        """The used part of the window, without what system prompt, tools and a reply take; above 1 if no reply fits."""
        return Utilization(self.overhead, self.notes + self.messages, self.window or 1, self.reply).value


def measure(view: View, policy: Policy, window: Window | None) -> Size:
    """Returns the size of a view, with the numbers of its policy in this window."""
    bounds, request = policy.request(view, window)
    tokens, known = view.tokens, view.calibration.known_tokens
    overhead = min(tokens, view.overhead)
    notes = min(tokens - overhead, view.note_tokens)
    return Size(
        tokens=tokens,
        overhead=overhead,
        notes=notes,
        messages=tokens - overhead - notes,
        basis=size_basis(view),
        window=bounds.window,
        window_basis="default" if window is None else window.basis,
        threshold=token_limit(policy.trigger, request),
        target=bounds.target,
        limit=bounds.limit,
        count=len(view.messages),
        round=view.checkpoint.carry.round,
        checkpoint=view.checkpoint_id or "",
        estimated=tokens if known is None else abs(tokens - known),
        reply=0 if window is None else window.reply,
        remarks=(view.usage_remark,) if view.usage_remark else (),
    )


def size_basis(view: View) -> str:
    """Returns how the tokens of a view are known."""
    if view.calibration.known_tokens is None:
        return ESTIMATED
    return f"reported with #{view.reported_seq}, estimated since" if view.reported_seq else "reported, estimated since"
