"""Names that a search can be narrowed to, and what is said to a name that nothing is called by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ..errors import InvalidInput
from ..events import Kind
from ..messages import Role
from ..summaries import readable

ROLES: tuple[str, ...] = get_args(Role)
KINDS = (Kind.MESSAGE, Kind.COMPACTION, Kind.UNDO, Kind.PIN, Kind.REDACTION, Kind.ATTEMPT)

Names = str | Sequence[str] | None


def names(given: Names) -> tuple[str, ...]:
    several = () if given is None else (given,) if isinstance(given, str) else given
    return tuple(map(readable, several))


def names_among(known: Sequence[str], given: Names, what: str) -> tuple[str, ...]:
    """The same where there are only so many: a slip of the pen must not look like an empty log."""
    found = names(given)
    for name in found:
        if name not in known:
            raise InvalidInput(f"{name!r:.80} is not a {what}: use one of {', '.join(known)}.")
    return found
