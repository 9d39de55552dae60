"""Settings and result rows of the lab, as plain data."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from ..messages.json_text import decodable
from .corpus import DEFAULT_CUTS
from .measures import RetentionScore
from .surprise import HORIZONS, Surprise


class Quantity(NamedTuple):
    """One column of a table: key, title, description, and which direction is better."""

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
    *(
        Quantity(
            key,
            f"surprise, {steps} step{'s' * (steps > 1)}",
            f"{steps} step{'s' * (steps > 1)}",
            f"the agent's own text in its next {f'{steps} steps' if steps > 1 else 'step'}, predicted from the context",
            more_is_better=False,
            main=True,
            share=False,
        )
        for key, steps in HORIZONS.items()
    ),
)
BY_KEY = {quantity.key: quantity for quantity in QUANTITIES}


def value_of(row: ScoreRow, key: str) -> float | None:
    found: float | None = row.surprise.get(key) if key in HORIZONS else getattr(row.score, key)
    return found


class ScoreRow(msgspec.Struct, frozen=True):
    """Scores of one contestant at one cut and budget."""

    session: str
    cut: int
    """Number of messages before the cut."""
    contestant: str
    budget: int
    rounds: int
    """Successive compactions; 1 compacts the whole history at once."""
    score: RetentionScore
    tokens: int
    seconds: float
    """Mean time per compaction."""
    problems: int | None = None
    surprise: Surprise = {}


class CutNames(msgspec.Struct, frozen=True):
    """Needed names at one cut, and which contestants kept them."""

    cut: int
    tokens: int
    names: tuple[str, ...]
    kept: dict[str, str]
    """Per contestant, one digit per name: 0 lost, 1 present, 2 on a line that keeps its context."""


class SessionResults(msgspec.Struct, frozen=True):
    """All score rows of one session."""

    session: str
    kind: str
    file: str
    rows: tuple[ScoreRow, ...] = ()
    """At the requested budgets."""
    in_a_row: tuple[ScoreRow, ...] = ()
    """After several successive compactions, at one budget."""
    at_summary: tuple[ScoreRow, ...] = ()
    """Where the tool compacted, at the size of its own summary."""
    after_summary: tuple[ScoreRow, ...] = ()
    """There, with as much room again for the newest messages."""
    names: tuple[CutNames, ...] = ()
    failures: tuple[str, ...] = ()


class NotMeasured(msgspec.Struct, frozen=True):
    """A file without rows, and the reason."""

    file: str
    why: str


SessionOutcome = SessionResults | NotMeasured
Half = Literal["report", "learn", "all"]


@decodable
class LabSettings(msgspec.Struct, frozen=True):
    """Settings of a lab run; plain data, sent to worker processes and stored with the results."""

    budgets: tuple[int, ...] = (2_000, 4_000, 8_000, 16_000, 32_000)
    rounds: tuple[int, ...] = (3, 5, 10)
    """Numbers of successive compactions to measure."""
    cuts: int = DEFAULT_CUTS
    """Cuts per session."""
    estimator: str = "chars/4"
    half: Half = "all"
    contestants: tuple[str, ...] = ()
    """Words to select contestants by name; empty selects all."""
    surprise_by: str | None = None
    """Model that predicts the next steps; PPMd without one."""
    surprise_url: str = ""
    """The model's completions server."""

    @property
    def surprise_unit(self) -> str:
        return "nats a token" if self.surprise_by else "bits a character"

    @property
    def focus(self) -> int:
        """The budget for successive compactions and single names."""
        return 4_000 if 4_000 in self.budgets else self.budgets[len(self.budgets) // 2]
