"""The recursive summary (S11-S13): each takes in the one before, and replaces it."""

from __future__ import annotations

from collections.abc import Callable

from ..budget import not_negative, positive
from ..errors import InvalidLimit
from ..summaries import RECURSIVE_TASK, SHADOW_PROMPT, SYSTEM, AsReply, FreeText, Style
from ..view import Request
from .ladder import LastResort
from .summary import Summary
from .windows import AnyEstimator, SlidingWindow


class RecursiveSummary(Summary):
    """Keep the newest events; what came before becomes a question for a summary and its answer.

    `overlap_size` events of what stays are shown to the model too, for continuity, and not summarised.
    """

    def __init__(
        self,
        max_events_to_keep: int = 10,
        overlap_size: int = 2,
        *,
        system_prompt: str = SYSTEM,
        shadow_prompt: str = SHADOW_PROMPT,
        estimator: AnyEstimator = None,
        max_tokens: int | None = None,
        verify: bool = True,
        last_resort: LastResort = "unchanged",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        positive("max_events_to_keep", max_events_to_keep)
        not_negative("overlap_size", overlap_size)
        if overlap_size >= max_events_to_keep:
            raise InvalidLimit(
                f"overlap_size={overlap_size} must be less than max_events_to_keep={max_events_to_keep}: "
                "it is a part of what stays."
            )
        super().__init__(
            SlidingWindow(max_events_to_keep, estimator),
            FreeText(RECURSIVE_TASK, system_prompt, style=Style(result_limit=2_000, text_limit=8_000)),
            AsReply(shadow_prompt),
            by="recursive summary",
            max_tokens=max_tokens,
            overlap=overlap_size,
            verify=verify,
            last_resort=last_resort,
            on_failure=on_failure,
        )
