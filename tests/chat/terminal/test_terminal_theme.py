"""Theme detection and output filters; the footer and its gauge."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from holdfast.chat.terminal.drawing import format_count
from holdfast.chat.terminal.footer import FooterState, format_usage, render_footer, usage_bar
from holdfast.chat.terminal.theme import (
    ASCII_SYMBOLS,
    AsciiFilter,
    ChatTheme,
    ControlCharacterFilter,
    NoColorFilter,
    detect_theme,
)

THEME = ChatTheme()


@pytest.mark.parametrize(
    ("environ", "unicode", "color"),
    [
        ({"LANG": "de_DE.UTF-8", "TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm"}, True, True),
        ({"LANG": "C", "TERM": "xterm"}, False, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8", "TERM": "xterm"}, False, True),
        ({"LANG": "C", "LC_CTYPE": "en_US.utf8", "TERM": "xterm"}, True, True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX", "TERM": "xterm"}, False, True),
        ({"LANG": "en_US.ISO-8859-1", "TERM": "xterm"}, False, True),
        ({"LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"LANG": "C.UTF-8", "TERM": "dumb"}, True, False),
        ({"LANG": "C.UTF-8", "TERM": "xterm-mono"}, True, False),
        ({"LANG": "C.UTF-8", "TERM": "vt220"}, True, False),
        ({"LANG": "C.UTF-8"}, True, False),
    ],
)
def test_detect_theme_by_environment(environ: dict[str, str], unicode: bool, color: bool) -> None:
    theme = detect_theme(environ)
    assert (theme.symbols is not ASCII_SYMBOLS, theme.color) == (unicode, color)
    assert len(theme.filters) == 1 + (not unicode) + (not color)


def test_filters_keep_cell_widths() -> None:
    segments = [Segment("Möwe — 海 ✓", Style(color="red", bold=True))]
    (plain,) = AsciiFilter().apply(segments, Color(0, 0, 0))
    assert plain.text == "Mowe - ?? ?" and plain.cell_length == segments[0].cell_length
    (grey,) = NoColorFilter().apply(segments, Color(0, 0, 0))
    assert grey.style is not None and grey.style.bold and grey.style.color is not None and grey.style.color.is_default


def test_control_character_filter_removes_control_characters() -> None:
    (shown,) = ControlCharacterFilter().apply([Segment("a\x1b[2J\u202eb\x9bc é 海")], Color(0, 0, 0))
    assert shown.text == "a[2Jbc é 海"


def footer_state(**given: object) -> FooterState:
    made = FooterState(clock=lambda: 0.0)
    made.session, made.model, made.preset = "83d702", "anthropic:claude", "holdfast"
    made.tokens, made.window, made.known = 12_345, 200_000, "known"
    for name, value in given.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(("known", "shown"), [("known", "12.3k"), ("estimated", "~12.3k"), ("unknown", "?12.3k")])
def test_format_usage_marks_certainty(known: str, shown: str) -> None:
    """P3: counted by the provider, partly estimated since, or a guess after a compaction."""
    assert format_usage(12_345, 200_000, known).plain == f"{shown}/200k 6 %"  # type: ignore[arg-type]


def test_usage_bar_length_follows_usage() -> None:
    assert usage_bar(0, 1_000, THEME).plain == "─" * 10
    assert usage_bar(1, 1_000, THEME).plain == "━" + "─" * 9
    assert usage_bar(500, 1_000, THEME).plain == "━━━━━─────"
    assert usage_bar(5_000, 1_000, THEME).plain == "━" * 10


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (12_345, "12.3k"), (199_960, "200k"), (1_250_000, "1.2M")],
)
def test_format_count_is_short(count: int, shown: str) -> None:
    assert format_count(count) == shown


def test_wide_footer_shows_all_fields() -> None:
    shown = render_footer(footer_state(auto=False, activity="writing"), THEME, 120, waiting=2, below=7).plain
    for field in ("writing 0 s", "2 queued", "↓ 7 more", "83d702", "anthropic:claude", "holdfast", "auto-compact off"):
        assert field in shown
    assert shown.endswith("━─────────  12.3k/200k 6 %") and len(shown) == 119


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 80])
def test_narrow_footer_keeps_most_important_fields(width: int) -> None:
    """P2: disabled automatic compaction is shown even in 40 columns, while something runs."""
    shown = render_footer(footer_state(auto=False, activity="writing"), THEME, width, waiting=2).plain
    assert len(shown) <= width
    if width >= 20:
        assert "12.3k/200k 6 %" in shown
    if width >= 30:
        assert "auto off" in shown or "auto-compact off" in shown
    if width >= 40:
        assert "auto-compact off" in shown
