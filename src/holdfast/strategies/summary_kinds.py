"""The three summary strategies of the documents: structured, recursive, and with state."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..context import Request
from ..errors import InvalidLimit
from ..summaries import (
    RECURSIVE_TASK,
    SHADOW_PROMPT,
    SYSTEM_PROMPT,
    AsReply,
    AsSystem,
    AsUser,
    FreeText,
    StateText,
    Structured,
    Style,
    SummaryRenderer,
)
from ..tokens.budget import require_not_negative, require_positive
from .fallback import LastResort
from .summary import Summary
from .trail import KeepTrail
from .windows import AnyEstimator, KeepLast, SlidingWindow

if TYPE_CHECKING:
    from ..types import Strategy


EXCERPT_TOKENS = 8_000
"""Size limit of the excerpts that follow the sections."""


class StructuredSummary(Summary):
    """Keeps the newest steps; summarizes the rest in fixed sections, with the task in the user's own words.

    Sections are updated round after round. `summary_tokens` is the length the prompt asks for,
    `max_summary_tokens` the output limit of the call; `max_tokens` limits the whole context.
    """

    def __init__(
        self,
        keep: Strategy | None = None,
        *,
        shown_as: SummaryRenderer | None = None,
        summary_tokens: int = 2_000,
        max_summary_tokens: int | None = 8_192,
        temperature: float | None = None,
        style: Style | None = None,
        max_tokens: int | None = None,
        verify: bool = True,
        excerpt_tokens: int = EXCERPT_TOKENS,
        last_resort: LastResort = "ledger",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        super().__init__(
            keep or KeepTrail(),
            Structured(summary_tokens, max_summary_tokens, temperature, style or Style()),
            shown_as or AsUser(),
            name="structured summary",
            max_tokens=max_tokens,
            verify=verify,
            excerpt_tokens=excerpt_tokens,
            last_resort=last_resort,
            on_failure=on_failure,
        )


class RecursiveSummary(Summary):
    """Keeps the newest events; each summary includes the previous one, and is shown as a question and its answer.

    `overlap_size` kept events are shown to the model for continuity, and not summarized. `estimator` counts
    `tokens_saved` of the result.
    """

    def __init__(
        self,
        max_events_to_keep: int = 10,
        overlap_size: int = 2,
        *,
        system_prompt: str = SYSTEM_PROMPT,
        shadow_prompt: str = SHADOW_PROMPT,
        estimator: AnyEstimator = None,
        max_tokens: int | None = None,
        verify: bool = True,
        last_resort: LastResort = "unchanged",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        require_positive("max_events_to_keep", max_events_to_keep)
        require_not_negative("overlap_size", overlap_size)
        if overlap_size >= max_events_to_keep:
            raise InvalidLimit(
                f"overlap_size={overlap_size} must be less than max_events_to_keep={max_events_to_keep}: "
                "the overlap is a part of the kept events."
            )
        super().__init__(
            SlidingWindow(max_events_to_keep, estimator),
            FreeText(RECURSIVE_TASK, system_prompt, style=Style(result_limit=2_000, text_limit=8_000)),
            AsReply(shadow_prompt),
            name="recursive summary",
            max_tokens=max_tokens,
            overlap=overlap_size,
            verify=verify,
            last_resort=last_resort,
            on_failure=on_failure,
        )


STATE_TOOLS = frozenset(("userQuestions", "proceedInOnboarding"))
STATE_TOOL_PREFIXES = ("linear",)


class StateSummary(Summary):
    """Keeps the last messages; summarizes the rest as a system message and a structured state.

    Calls of tools in `tools`, or whose name starts with one of `prefixes`, are included in the transcript; others are
    left out. The summary is rolled up above 80,000 tokens, or earlier where the target has less room.
    """

    max_room = 100_000

    def __init__(
        self,
        keep_last: int = 6,
        *,
        tools: Collection[str] = STATE_TOOLS,
        prefixes: Collection[str] = STATE_TOOL_PREFIXES,
        max_tokens: int | None = None,
        verify: bool = True,
        last_resort: LastResort = "unchanged",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        names, name_prefixes = frozenset(tools), tuple(prefixes)

        def is_included(tool: str) -> bool:
            return tool in names or tool.startswith(name_prefixes)

        super().__init__(
            KeepLast(keep_last),
            StateText(style=Style(result_limit=4_000, text_limit=20_000, tools=is_included)),
            AsSystem(),
            name="state summary",
            max_tokens=max_tokens,
            verify=verify,
            last_resort=last_resort,
            on_failure=on_failure,
        )
