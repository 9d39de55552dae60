"""A word to a model that was in the middle of something when its conversation was compacted or broke off (P22)."""

from __future__ import annotations

from ..messages import decode_one, is_framed
from ..service import Context

GO_ON = "(The conversation was compacted in the middle of your work. Go on with it where you stopped.)"
INTERRUPTED = "(You were interrupted. Go on where you stopped.)"
_FEW = 8
"""Messages at the end that are looked at."""


def nudge(context: Context, *, compacted: bool, own: bool) -> str | None:
    """What to say before the next step, if anything.

    Where the list of messages is our own, it may not end with the model's words, either: some take none that does.
    """
    shown = [decode_one(message, context.format) for message in context.messages[-_FEW:]]
    last = next((message for message in reversed(shown) if not is_framed(message)), None)
    spoke = own and bool(shown) and shown[-1].role == "assistant" and not shown[-1].calls
    working = compacted and last is not None and last.role == "tool"
    if not (spoke or working):
        return None
    return GO_ON if compacted else INTERRUPTED
