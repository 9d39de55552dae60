"""The structured summary (L6-L8, P24): sections that are updated round after round, and lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..summaries import AsUser, Rendering, Structured, Style
from ..view import Request
from .ladder import LastResort
from .summary import Summary
from .tail import KeepRecent

if TYPE_CHECKING:
    from ..types import Strategy

AT_HAND = 8_000
"""Tokens of lines that may follow the sections."""


class StructuredSummary(Summary):
    """Keep the newest turns; what came before becomes sections, with the task in the user's own words.

    `asked` is how many tokens the model is told to keep to, `allowed` after how many it is cut off.
    """

    def __init__(
        self,
        keep: Strategy | None = None,
        *,
        shown_as: Rendering | None = None,
        asked: int = 2_000,
        allowed: int | None = 8_192,
        temperature: float | None = None,
        style: Style | None = None,
        max_tokens: int | None = None,
        verify: bool = True,
        at_hand: int = AT_HAND,
        last_resort: LastResort = "ledger",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        super().__init__(
            keep or KeepRecent(),
            Structured(asked, allowed, temperature, style or Style()),
            shown_as or AsUser(),
            by="structured summary",
            max_tokens=max_tokens,
            verify=verify,
            at_hand=at_hand,
            last_resort=last_resort,
            on_failure=on_failure,
        )
