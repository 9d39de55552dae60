"""Numbers and names as users write them: `40k`, and the closest known name for a misspelled one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from ..errors import InvalidLimit

_COUNT_PATTERN = re.compile(
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?P<rest>\.\d+)?(?P<unit>[km]?)", re.IGNORECASE | re.ASCII
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_count(text: str, name: str) -> int:
    """Parses a whole number of at least 1; raises InvalidLimit otherwise."""
    found = _COUNT_PATTERN.fullmatch(text.strip())
    if found is not None:
        digits = found["digits"].replace(",", "").replace("_", "") + (found["rest"] or "")
        value = Decimal(digits) * _UNITS[found["unit"].lower()]
        if value >= 1 and value == int(value):
            return int(value)
    raise InvalidLimit(f"{name} takes a whole number of at least 1, like 100000, 100k or 1.5M, not {text!r}.")


def closest_name(given: str, names: Iterable[str], likeness: float = 0.5) -> str | None:
    """Returns the most similar name, if one is alike enough."""
    return next(iter(difflib.get_close_matches(given.lower(), list(names), 1, likeness)), None)


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Returns "did you mean 'x'?" for the closest name, or an empty string."""
    near = closest_name(given, names)
    return f"did you mean {near!r}?" if near else ""


def unknown_name_message(what: str, given: str, names: Sequence[str], hidden: Sequence[str] = ()) -> str:
    hint = did_you_mean(given, (*names, *hidden))
    article = "an" if what[0] in "aeiou" else "a"
    return f"{given!r} is not {article} {what}: {hint + ' ' if hint else ''}Use one of {', '.join(names)}."
