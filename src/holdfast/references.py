"""References: the short names by which ledgers, summaries and people point at what was said.

In a session an event is `#123`: its seq, which is short, never changes, and means the same in every fork
that shares the event. Event ids would not do: they begin with the time, so those of one hour share most of
their digits. Without a session it is the place of the message in the history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from .errors import InvalidInput
from .events import Event

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,5}(?![0-9])|[0-9]{1,18})"
"""The number of an event, as references and citations write it."""
_NUMBER = re.compile(NUMBER)
_FROM = rf"(?:@(?P<offset>{NUMBER}))?"
_TO = r"\s*(?:-|–|\.\.)\s*"
_NUMBERED = re.compile(rf"\[?#?(?P<first>{NUMBER})\]?{_FROM}(?:{_TO}\[?#?(?P<last>{NUMBER}))?\]?")
_NAMED = re.compile(rf"#?(?P<first>[^\s@#]+?){_FROM}(?:{_TO}(?P<last>#[^\s@#]+|[0-9]+))?")
_FORMS = "write #123 or [123] for an event, #123-#130 for several, #123@4000 to go on from a character of it"


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
    """Read a reference as notes, people and models write it; InvalidInput says how."""
    written = text.strip() if isinstance(text, str) else ""
    found = _NUMBERED.fullmatch(written) or _NAMED.fullmatch(written)
    if found is None:
        raise InvalidInput(f"{text!r:.80} is no reference: {_FORMS}.")
    return Span(_bare(found["first"]), found["last"] and _bare(found["last"]), int(_bare(found["offset"] or "0")))


def seq_of(name: str) -> int | None:
    """The seq that a name stands for; None if it is an id, or the beginning of one."""
    bare = _bare(name)
    return int(bare) if _NUMBER.fullmatch(bare) else None


def seqs_in(cited: str) -> Iterator[int]:
    """The seqs of all events that a text cites."""
    return (int(_bare(number)) for number in _NUMBER.findall(cited))


def _bare(name: str) -> str:
    """An id, or the digits of a number alone."""
    bare = name.removeprefix("#")
    return bare.replace(",", "") if _NUMBER.fullmatch(bare) else bare
