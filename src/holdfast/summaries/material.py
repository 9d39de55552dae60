"""What a summary is made of."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..messages import Json
from .transcript import Transcript


class Material(msgspec.Struct, frozen=True):
    """All that the writer of a summary is given."""

    conversation: Transcript
    """What is to be archived."""
    upcoming: Transcript = Transcript()
    """What stays and comes next: for continuity, not to be summarised (S12)."""
    previous: str = ""
    """The summary so far, as its writer wrote it."""
    state: Json | None = None
    task: str = ""
    """The user's first message (L7)."""
    task_place: int = 0
    """The number of that message; 0 where it has none."""
    files: str = ""
    """Files read and changed, from the log (P13)."""
    round: int = 1
    instructions: str = ""
    """What the person asks the summary to mind (P1)."""
    room: int = 0
    """Tokens that the summary may take in the context."""
    reads: int | None = None
    """Tokens that the model can read at once, where that is known."""
    measure: Callable[[str], int] = len
    """Tokens of a text."""
    notes_on: Callable[[int], str] = lambda characters: ""
    """Notes of so many characters on all of it, for when not all of it can be told."""


class Draft(msgspec.Struct, frozen=True):
    """What a writer made of it."""

    text: str
    """As it goes back to the writer in the next round."""
    state: Json | None = None
    remarks: tuple[str, ...] = ()
    shown: str = ""
    """As it is shown, where that is more."""
