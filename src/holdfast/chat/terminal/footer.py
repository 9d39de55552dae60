"""The footer line: activity, session, model, and token usage of the window."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from ...agent.events import WindowUsage
from ...agent.tools import Mode
from ...compaction.size import SizeCertainty
from ...io.text import sanitize_line
from ..state import ChatState
from .drawing import format_count, format_percent
from .theme import ACCENT, ALERT, BOLD, DIM, ERROR, SUCCESS, WARNING, ChatTheme

BAR_WIDTH = 10
_CERTAINTY_MARKS: dict[SizeCertainty, str] = {"known": "", "estimated": "~", "unknown": "?"}
_HIGH_SHARE, _FULL_SHARE = 0.6, 0.85


def format_usage(tokens: int, window: int, known: SizeCertainty) -> Text:
    """Formats `12.3k/200k 6 %`, with ~ for a partial estimate and ? for a guess until the next reply."""
    mark = _CERTAINTY_MARKS[known]
    return Text.assemble(
        (f"{mark}{format_count(tokens)}/{format_count(window)}", BOLD), (f" {format_percent(tokens, window)}", DIM)
    )


def usage_bar(tokens: int, window: int, theme: ChatTheme, length: int = BAR_WIDTH) -> Text:
    share = min(1.0, tokens / window) if window else 0.0
    filled = max(1 if tokens else 0, round(share * length))
    return Text.assemble(
        (theme.symbols.bar_full * filled, _usage_style(share)), (theme.symbols.bar_empty * (length - filled), DIM)
    )


def _usage_style(share: float) -> Style:
    return ERROR if share >= _FULL_SHARE else WARNING if share >= _HIGH_SHARE else SUCCESS


class FooterState:
    """Values shown in the footer, updated by events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.model = self.preset = ""
        self.session = ""
        """Shortened id."""
        self.tokens = self.window = 0
        self.known: SizeCertainty = "estimated"
        self.threshold: int | None = None
        """Tokens above which the session is compacted, if they are known."""
        self.auto = True
        self.other = ""
        """Who else is in a turn of the session."""
        self.mode: Mode = "ask"
        self.busy = False
        self.activity = ""
        """Current activity in a word or two; empty when idle."""
        self.notice = ""
        """One-time message; the next key clears it."""
        self._clock = clock
        self._activity_since = 0.0
        self._retry_at: float | None = None

    @property
    def elapsed(self) -> str:
        """Duration of the current activity, or the time left until a retry."""
        if self._retry_at is not None:
            return f"in {max(0, ceil(self._retry_at - self._clock()))} s"
        return f"{int(self._clock() - self._activity_since)} s"

    def set_activity(self, what: str) -> None:
        if what != self.activity:
            self.activity, self._activity_since, self._retry_at = what, self._clock(), None

    def wait_for_retry(self, seconds: float) -> None:
        """Counts down to the next attempt of a model call."""
        self.set_activity("retrying")
        self._retry_at = self._clock() + seconds

    def update_usage(self, event: WindowUsage) -> None:
        self.tokens, self.window, self.known, self.auto = event.tokens, event.window, event.known, event.auto

    def update_session(self, state: ChatState) -> None:
        self.model, self.preset, self.mode = state.model, state.preset, state.mode
        self.tokens, self.window, self.known, self.auto = state.tokens, state.window, state.known, state.auto


COMPACTING = "compacting"
AUTO_OFF_LABEL = "auto-compact off"
_DROP_ORDER = (
    *("bar", "preset", "session", "model", "below", "activity", "near", "other", "waiting", "auto"),
    *("activity", "auto", "mode", "near", "other"),
)
"""Order in which fields are shortened or dropped in a narrow footer. The numbers stay."""
_SPINNER_FPS = 5
"""Spinner frames per second."""


class Footer(Widget):
    """One-line widget that drops the least important fields when narrow."""

    DEFAULT_CSS = "Footer { height: 1; background: ansi_default; color: ansi_default; }"

    def __init__(self, state: FooterState, theme: ChatTheme) -> None:
        super().__init__()
        self._state, self._chat_theme = state, theme
        self.waiting = 0
        """Prompts not delivered yet."""
        self.below = 0
        """Lines below the screen."""

    def render(self) -> Text:
        return render_footer(self._state, self._chat_theme, self.size.width, self.waiting, self.below)


def render_footer(state: FooterState, theme: ChatTheme, width: int, waiting: int = 0, below: int = 0) -> Text:
    """Renders the footer, shortening and dropping fields until the rest fits."""
    symbols = theme.symbols
    left = {
        "mode": [Text(state.mode, ACCENT)] if state.mode != "ask" else [],
        "activity": _activity_forms(state, theme),
        "other": [Text(f"{state.other} is in a turn", WARNING), Text("other turn", WARNING)] if state.other else [],
        "waiting": [Text(f"{waiting} queued", WARNING)] if waiting else [],
        "below": [Text(f"{symbols.down} {below} more", ACCENT)] if below else [],
        "session": [Text(sanitize_line(state.session), DIM)],
        "model": [Text(sanitize_line(state.model), DIM)],
        "preset": [Text(state.preset, DIM)],
    }
    right = {
        "near": _threshold_forms(state),
        "auto": [] if state.auto else [Text(f" {AUTO_OFF_LABEL} ", ALERT), Text(" auto off ", ALERT)],
        "bar": [usage_bar(state.tokens, state.window, theme)] if state.window else [],
        "numbers": [format_usage(state.tokens, state.window, state.known)] if state.window else [],
    }
    fields = left | right
    for name in _DROP_ORDER:
        if sum(forms[0].cell_len + 2 for forms in fields.values() if forms) <= width:
            break
        fields[name][:1] = []
    return _align_sides(*([forms[0] for forms in side.values() if forms] for side in (left, right)), width=width)


def _align_sides(left: list[Text], right: list[Text], *, width: int) -> Text:
    """Joins the left fields, and the right fields aligned to the edge."""
    line = Text(" ", no_wrap=True, overflow="crop")
    line.append_text(Text("  ").join(left))
    end = Text("  ").join(right)
    line.append(" " * max(1, width - line.cell_len - end.cell_len - 1))
    line.append_text(end)
    line.truncate(width)
    return line


_NEAR_SHARE = 0.85
"""Share of the threshold from which the footer announces a compaction."""


def _threshold_forms(state: FooterState) -> list[Text]:
    due = state.threshold
    if not state.auto or due is None or state.tokens < _NEAR_SHARE * due or state.activity == COMPACTING:
        return []
    if state.tokens > due:
        return [Text("compacts next", WARNING)]
    return [Text(f"compacts at {format_count(due)}", WARNING), Text(f"of {format_count(due)}", WARNING)]


def _activity_forms(state: FooterState, theme: ChatTheme) -> list[Text]:
    if state.notice:
        return [Text(state.notice, WARNING)]
    if not state.activity:
        return []
    frames = theme.symbols.spinner
    symbol = Text(f"{frames[int(time.monotonic() * _SPINNER_FPS) % len(frames)]}", ACCENT)
    whole = Text(" ").join([symbol, Text(sanitize_line(state.activity)[:24]), Text(state.elapsed, DIM)])
    return [whole, symbol]
