"""References to events, such as `#123`, in ledgers, summaries and user input.

The number is the event's seq: short, stable, and the same in every fork that shares the event. Event ids
are not used, because those of one hour share most of their digits. Without a session, the number is the
position of the message in the history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ..errors import InvalidInput
from .events import Event

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,5}(?![0-9])|[0-9]{1,18})"
"""Pattern of an event number in references and citations."""
READ_TOOL = "recall_read"
"""The tool that shows an agent what a reference names."""
_NUMBER = re.compile(NUMBER)
_FROM = rf"(?:@(?P<offset>{NUMBER}))?"
_TO = r"\s*(?:-|–|\.\.)\s*"
_NUMBERED = re.compile(rf"\[?#?(?P<first>{NUMBER})\]?{_FROM}(?:{_TO}\[?#?(?P<last>{NUMBER}))?\]?")
_NAMED = re.compile(rf"#?(?P<first>[^\s@#]+?){_FROM}(?:{_TO}(?P<last>#[^\s@#]+|[0-9]+))?")
_FORMS = "write #123 or [123] for an event, #123-#130 for several, #123@4000 to start at a character of it"


class Span(msgspec.Struct, frozen=True):
    """A parsed reference: one event or a range, from a character offset in the first."""

    first: str
    last: str | None = None
    offset: int = 0


def reference(event: Event | int) -> str:
    """Returns the reference to an event, given the event or its seq: `#123`."""
    return f"#{event if isinstance(event, int) else event.seq}"


def citation(seq: int) -> str:
    """Returns a citation for use in notes: `[123]`, because `#123` would look like an issue number."""
    return f"[{seq:,}]"


def parse_reference(text: str) -> Span:
    """Parses a reference as notes, users and models write it; raises InvalidInput."""
    written = text.strip() if isinstance(text, str) else ""
    found = _NUMBERED.fullmatch(written) or _NAMED.fullmatch(written)
    if found is None:
        raise InvalidInput(f"{text!r:.80} is not a reference: {_FORMS}.")
    return Span(
        _strip_hash(found["first"]),
        found["last"] and _strip_hash(found["last"]),
        int(_strip_hash(found["offset"] or "0")),
    )


def parse_seq(name: str) -> int | None:
    """Returns the seq of a numeric reference; None for an event id or its prefix."""
    bare = _strip_hash(name)
    return int(bare) if _NUMBER.fullmatch(bare) else None


def cited_seqs(cited: str) -> Iterator[int]:
    """Yields the seqs that a text cites."""
    return (int(_strip_hash(number)) for number in _NUMBER.findall(cited))


def _strip_hash(name: str) -> str:
    """Strips `#`, and the thousands separators of a number."""
    bare = name.removeprefix("#")
    return bare.replace(",", "") if _NUMBER.fullmatch(bare) else bare
