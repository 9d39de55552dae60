"""References: the short names by which ledgers, summaries and people point at what was said.

In a session an event is `#123`: its seq, which is short, never changes, and means the same in every fork
that shares the event. Event ids would not do: they begin with the time, so those of one hour share most of
their digits. Without a session it is the place of the message in the history.
"""

from __future__ import annotations

import re

import msgspec

from .errors import InvalidInput
from .events import Event

_SPAN = re.compile(
    r"#(?P<first>[^\s@#]+?)(?:@(?P<offset>\d+))?(?:\s*(?:-|–|\.\.)\s*(?P<last>#[^\s@#]+|\d+))?", re.ASCII
)
_CITED = re.compile(r"\[(\d[\d,]*)\]", re.ASCII)
_FORMS = "write #123 for an event, #123-#130 for several, #123@4000 to go on from a character of it"


class Span(msgspec.Struct, frozen=True):
    """What a reference names: one event, or all from one to another, from a character of the first on."""

    first: str
    last: str | None = None
    offset: int = 0


def reference(event: Event | int) -> str:
    """The short name of an event in its session, given the event or its seq: `#123`."""
    return f"#{event if isinstance(event, int) else event.seq}"


def citation(seq: int) -> str:
    """A reference inside notes: `[123]`. There `#123` would be taken for an issue that was talked about."""
    return f"[{seq:,}]"


def span_of(text: str) -> Span:
    """Read a reference as people and models write it; InvalidInput says how."""
    written = text.strip() if isinstance(text, str) else ""
    if cited := _CITED.fullmatch(written):
        return Span(cited[1].replace(",", ""))
    found = _SPAN.fullmatch(written if written.startswith("#") else f"#{written}")
    if found is None:
        raise InvalidInput(f"{text!r} is no reference: {_FORMS}.")
    return Span(found["first"], found["last"] and _bare(found["last"]), int(found["offset"] or 0))


def seq_of(name: str) -> int | None:
    """The seq that a name stands for; None if it is an id, or the beginning of one."""
    bare = _bare(name)
    return int(bare) if bare.isdecimal() and bare.isascii() and len(bare) < 19 else None


def _bare(name: str) -> str:
    return name.removeprefix("#")
