"""How full the window is: a bar and the numbers, as sure as they are."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from ..agent.events import Known
from .look import BAD, BOLD, DIM, GOOD, WARN, Look
from .numbers import percent, short

BAR = 10
_MARKS: dict[Known, str] = {"known": "", "estimated": "~", "unknown": "?"}
_HIGH, _FULL = 0.6, 0.85


def numbers(tokens: int, window: int, known: Known) -> Text:
    """`12.3k/200k 6 %`, with ~ where a part is estimated and ? until the next reply tells (P3)."""
    mark = _MARKS[known]
    return Text.assemble((f"{mark}{short(tokens)}/{short(window)}", BOLD), (f" {percent(tokens, window)}", DIM))


def bar(tokens: int, window: int, look: Look, length: int = BAR) -> Text:
    share = min(1.0, tokens / window) if window else 0.0
    filled = max(1 if tokens else 0, round(share * length))
    return Text.assemble((look.signs.full * filled, _style(share)), (look.signs.rest * (length - filled), DIM))


def _style(share: float) -> Style:
    return BAD if share >= _FULL else WARN if share >= _HIGH else GOOD
