"""How much of what was needed a compacted context still holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..messages import Message, ToolCall, ToolResult
from .needs import NeededItems
from .text import LONGEST_LINE, all_lines, content_words_on, names_in, names_on, split_words

READABLE_SHARE = 0.6
CONTEXT_SHARE = 0.5


class RetentionScore(msgspec.Struct, frozen=True):
    """Retention of one context at one cut. Shares are None where nothing was needed."""

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


class KeptNames(NamedTuple):
    """Needed names present in a context, and those on a line that keeps their surroundings."""

    present: frozenset[str]
    in_context: frozenset[str]


def score_context(context: Sequence[Message], needs: NeededItems) -> RetentionScore:
    lines = list(dict.fromkeys(all_lines(context)))
    text = "\n".join(lines)
    held = frozenset().union(*map(names_on, lines))
    missing = needs.names - held
    user_words = frozenset().union(*map(content_words_on, lines)) if needs.users else frozenset()
    whole = set(lines)
    return RetentionScore(
        names=_ratio(len(needs.names) - len(missing), len(needs.names)),
        in_context=_ratio(len(_names_in_context(lines, needs)), len(needs.names)),
        edited_lines=_ratio(sum(line in whole or line in text for line in needs.lines), len(needs.lines)),
        modified=_ratio(len(needs.modified & held) + _count_verbatim(needs.modified - held, text), len(needs.modified)),
        read=_ratio(len(needs.read & held) + _count_verbatim(needs.read - held, text), len(needs.read)),
        users=_ratio(
            sum(len(words & user_words) >= READABLE_SHARE * len(words) for words in needs.users), len(needs.users)
        ),
        errors=_ratio(sum(line in text for line in needs.errors), len(needs.errors)),
        commands=_ratio(sum(command in text for command in needs.commands), len(needs.commands)),
        fetch=_refetch_tokens(missing, needs),
        invented=len(held - needs.known - _wire_ids(context)),
    )


def kept_names(context: Sequence[Message], needs: NeededItems) -> KeptNames:
    """The names themselves, to inspect one cut."""
    lines = list(dict.fromkeys(all_lines(context)))
    held = frozenset().union(*map(names_on, lines))
    return KeptNames(needs.names & held, frozenset(_names_in_context(lines, needs)))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _count_verbatim(names: frozenset[str], text: str) -> int:
    """Counts file names that the name pattern misses, by substring search."""
    return sum(name in text for name in names)


def _names_in_context(lines: Sequence[str], needs: NeededItems) -> set[str]:
    """Names on a line with at least half of the other words of a line that held them."""
    kept: set[str] = set()
    for line in lines:
        if not (names := (names_on(line) & needs.names) - kept) or len(here := set(split_words(line))) > LONGEST_LINE:
            continue
        for name in names:
            if any(len(around & here) >= CONTEXT_SHARE * len(around) for around in needs.contexts[name]):
                kept.add(name)
    return kept


def _refetch_tokens(missing: frozenset[str], needs: NeededItems) -> int:
    """Tokens of earlier tool results to read again for the missing names: a greedy cover."""
    left, tokens = set(missing), 0
    while left:
        best = max(needs.results, key=lambda result: len(result[1] & left) / max(1, result[0]), default=None)
        if best is None or not best[1] & left:
            break
        tokens += best[0]
        left -= best[1]
    return tokens


def _wire_ids(context: Sequence[Message]) -> set[str]:
    """Names that occur in tool call ids, which belong to the wire format."""
    ids = [part.id for m in context for part in m.parts if isinstance(part, ToolCall)]
    ids += [part.call_id for m in context for part in m.parts if isinstance(part, ToolResult)]
    return names_in(" ".join(ids))
