"""How much of what was needed a compacted context still holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..messages import Message, ToolCall, ToolResult
from .needs import Needs
from .reading import LONGEST_LINE, all_lines, names_in, names_on, said_on, words

READABLE = 0.6
IN_CONTEXT = 0.5


class Score(msgspec.Struct, frozen=True):
    """One context at one cut. Shares are None where nothing was needed."""

    names: float | None
    in_context: float | None
    edited_lines: float | None
    modified: float | None
    read: float | None
    users: float | None
    errors: float | None
    commands: float | None
    fetch: int
    invented: int


class Kept(NamedTuple):
    """The needed names that a context still holds, and those that stand on a line which keeps their context."""

    present: frozenset[str]
    in_context: frozenset[str]


def measure(context: Sequence[Message], needs: Needs) -> Score:
    lines = list(dict.fromkeys(all_lines(context)))
    text = "\n".join(lines)
    held = frozenset().union(*map(names_on, lines))
    missing = needs.names - held
    spoken = frozenset().union(*map(said_on, lines)) if needs.users else frozenset()
    whole = set(lines)
    return Score(
        names=_share(len(needs.names) - len(missing), len(needs.names)),
        in_context=_share(len(_in_context(lines, needs)), len(needs.names)),
        edited_lines=_share(sum(line in whole or line in text for line in needs.lines), len(needs.lines)),
        modified=_share(len(needs.modified & held) + _plain(needs.modified - held, text), len(needs.modified)),
        read=_share(len(needs.read & held) + _plain(needs.read - held, text), len(needs.read)),
        users=_share(sum(len(said & spoken) >= READABLE * len(said) for said in needs.users), len(needs.users)),
        errors=_share(sum(line in text for line in needs.errors), len(needs.errors)),
        commands=_share(sum(said in text for said in needs.commands), len(needs.commands)),
        fetch=_fetch(missing, needs),
        invented=len(held - needs.known - _own_names(context)),
    )


def kept_names(context: Sequence[Message], needs: Needs) -> Kept:
    """Which names they are: for a person who wants to look at one cut."""
    lines = list(dict.fromkeys(all_lines(context)))
    held = frozenset().union(*map(names_on, lines))
    return Kept(needs.names & held, frozenset(_in_context(lines, needs)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _plain(names: frozenset[str], text: str) -> int:
    """File names that no pattern takes for one: they are looked up as they are."""
    return sum(name in text for name in names)


def _in_context(lines: Sequence[str], needs: Needs) -> set[str]:
    """Names that stand on a line with at least half of the other words of a line that held them."""
    kept: set[str] = set()
    for line in lines:
        if not (names := (names_on(line) & needs.names) - kept) or len(here := set(words(line))) > LONGEST_LINE:
            continue
        for name in names:
            if any(len(around & here) >= IN_CONTEXT * len(around) for around in needs.contexts[name]):
                kept.add(name)
    return kept


def _fetch(missing: frozenset[str], needs: Needs) -> int:
    """Tokens of earlier tool results that would give the missing names back: a greedy cover."""
    left, tokens = set(missing), 0
    while left:
        best = max(needs.results, key=lambda result: len(result[1] & left) / max(1, result[0]), default=None)
        if best is None or not best[1] & left:
            break
        tokens += best[0]
        left -= best[1]
    return tokens


def _own_names(context: Sequence[Message]) -> set[str]:
    """Ids that belong to the wire format, not to what was said."""
    ids = [part.id for m in context for part in m.parts if isinstance(part, ToolCall)]
    ids += [part.call_id for m in context for part in m.parts if isinstance(part, ToolResult)]
    return names_in(" ".join(ids))
