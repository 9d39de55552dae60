"""What a command is told, in the words that coding agents' hooks know, and how its own words are understood.

0 is consent: what is printed is an answer. 2 is a veto, and its reason is on standard error. Anything else is a
failure of the command, which stops nothing.
"""

from __future__ import annotations

import os

import msgspec

from ..messages import Json
from ..models import scrub
from ..shell import Said
from ..summaries.transcript import cut
from .events import CompactionCompleted
from .questions import Before, Instructions, SessionStart, Veto

Told = Before | CompactionCompleted | SessionStart
_NAMES = {Before: "PreCompact", CompactionCompleted: "PostCompact", SessionStart: "SessionStart"}

LONGEST = 10_000
"""Characters of a text that a hook adds."""
_REASON = 500
_VETO = 2


class Misunderstood(Exception):
    """A command failed, or said something that is no answer."""


def told(given: Told, instructions: str | None) -> Json:
    """One JSON object for its standard input."""
    said: Json = {
        "hook_event_name": _NAMES[type(given)],
        "session_id": given.session,
        "lane": given.lane,
        "trigger": given.origin,
        "custom_instructions": instructions,
        "cwd": os.getcwd(),
    }
    if isinstance(given, Before):
        return said | {"tokens": given.tokens, "budget": given.budget}
    if isinstance(given, SessionStart):
        return said | {"tokens": given.tokens, "round": given.round, "source": given.source}
    sizes = {"tokens_before": given.tokens_before, "tokens_after": given.tokens_after}
    return said | {"tokens": given.tokens_after, **sizes, "round": given.round, "compact_summary": given.summary}


def understood(said: Said, given: Told) -> Veto | Instructions | str | None:
    """What its words answer to what it was told; after a compaction there is nothing left to answer."""
    if isinstance(given, Before):
        return _verdict(said)
    found = _object(said)
    return _context(said, found) if isinstance(given, SessionStart) else None


def _verdict(said: Said) -> Veto | Instructions | None:
    if said.code == _VETO:
        return Veto(cut(scrub(said.err), _REASON))
    found = _object(said)
    if found is None:
        return Instructions(cut(said.out, LONGEST)) if said.out else None
    if found.get("decision") == "block":
        return Veto(cut(scrub(_text(found, "reason")), _REASON))
    text = _text(found, "instructions")
    return Instructions(cut(text, LONGEST)) if text else None


def _context(said: Said, found: Json | None) -> str | None:
    if found is None:
        return said.out or None
    inner = found.get("hookSpecificOutput")
    return _text(inner if isinstance(inner, dict) else found, "additionalContext") or None


def _object(said: Said) -> Json | None:
    """The JSON object that was printed; None where it is plain text."""
    if said.code:
        reason = cut(scrub(said.err), _REASON)
        raise Misunderstood(f"it ended with {said.code}" + (f": {reason}" if reason else ""))
    try:
        found = msgspec.json.decode(said.out)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _text(found: Json, key: str) -> str:
    value = found.get(key) or ""
    if not isinstance(value, str):
        raise Misunderstood(f"its {key} is no text but {msgspec.json.encode(value).decode()[:40]}")
    return value.strip()
