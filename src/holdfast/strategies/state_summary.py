"""The workstream's summary with its state (W3-W10)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..summaries import AsSystem, StateText, Style
from ..view import Request
from .ladder import LastResort
from .summary import Summary
from .tail import KeepLast

TOOLS = frozenset(("userQuestions", "proceedInOnboarding"))
PREFIXES = ("linear",)


class StateSummary(Summary):
    """Keep the last messages; what came before becomes a system message, and a state that is kept in code.

    Of tools, only those named by `tools` or by the beginnings in `prefixes` are told to the model (W4).
    """

    def __init__(
        self,
        keep_last: int = 6,
        *,
        tools: Collection[str] = TOOLS,
        prefixes: Collection[str] = PREFIXES,
        max_tokens: int | None = None,
        verify: bool = True,
        last_resort: LastResort = "unchanged",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        names, beginnings = frozenset(tools), tuple(prefixes)

        def told(tool: str) -> bool:
            return tool in names or tool.startswith(beginnings)

        super().__init__(
            KeepLast(keep_last),
            StateText(style=Style(result_limit=4_000, text_limit=20_000, tools=told)),
            AsSystem(),
            by="state summary",
            max_tokens=max_tokens,
            verify=verify,
            last_resort=last_resort,
            on_failure=on_failure,
        )
