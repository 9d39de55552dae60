"""What is measured, in the words of the reports."""

from __future__ import annotations

from typing import NamedTuple

from .results import Row


class Quantity(NamedTuple):
    """One column of a table: its key, what it is called, what it says, and which way is better."""

    key: str
    title: str
    short: str
    about: str
    more_is_better: bool = True
    main: bool = False
    """Given with an interval."""
    share: bool = True


QUANTITIES = (
    Quantity("names", "names still present", "names", "names that a later call refers to, anywhere in it", main=True),
    Quantity(
        "in_context",
        "names in context",
        "in context",
        "the same, on a line with at least half of the other words of a line that held it",
        main=True,
    ),
    Quantity("edited_lines", "lines edited later", "edited lines", "old text of later edits, verbatim", main=True),
    Quantity("modified", "files modified", "files mod.", "files changed so far, by name"),
    Quantity("read", "files read", "files read", "files read so far, by name"),
    Quantity("users", "user messages", "user msgs", "the user's messages, readable: 60 % of their words"),
    Quantity("errors", "last errors", "last errs", "the last ten error lines, exact"),
    Quantity("commands", "commands run again", "cmds again", "commands that are run again, readable"),
    Quantity(
        "fetch", "tokens fetched again", "fetch again", "tokens of tool results to read again", False, True, False
    ),
    Quantity("invented", "invented names", "inv.", "names that occur nowhere in the input", False, False, False),
)
BY_KEY = {quantity.key: quantity for quantity in QUANTITIES}


def value_of(row: Row, key: str) -> float | None:
    found: float | None = getattr(row.score, key)
    return found
