"""What a terminal can show, by its environment; the footer and its gauge."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from holdfast.terminal.footer import footer
from holdfast.terminal.gauge import bar, numbers
from holdfast.terminal.look import ASCII, Harmless, InAscii, Look, NoColour, look_of
from holdfast.terminal.numbers import short
from holdfast.terminal.standing import Standing

LOOK = Look()


@pytest.mark.parametrize(
    ("environ", "unicode", "colour"),
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
def test_signs_and_colours_by_the_environment(environ: dict[str, str], unicode: bool, colour: bool) -> None:
    look = look_of(environ)
    assert (look.signs is not ASCII, look.colour) == (unicode, colour)
    assert len(look.filters) == 1 + (not unicode) + (not colour)


def test_a_filter_keeps_every_cell_in_its_place() -> None:
    segments = [Segment("Möwe — 海 ✓", Style(color="red", bold=True))]
    (plain,) = InAscii().apply(segments, Color(0, 0, 0))
    assert plain.text == "Mowe - ?? ?" and plain.cell_length == segments[0].cell_length
    (grey,) = NoColour().apply(segments, Color(0, 0, 0))
    assert grey.style is not None and grey.style.bold and grey.style.color is not None and grey.style.color.is_default


def test_nothing_that_steers_leaves_the_screen() -> None:
    (shown,) = Harmless().apply([Segment("a\x1b[2J\u202eb\x9bc é 海")], Color(0, 0, 0))
    assert shown.text == "a[2Jbc é 海"


def standing(**given: object) -> Standing:
    made = Standing(clock=lambda: 0.0)
    made.session, made.model, made.preset = "01a1df144f47ec35cc83d702", "anthropic:claude", "holdfast"
    made.tokens, made.window, made.known = 12_345, 200_000, "known"
    for name, value in given.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(("known", "shown"), [("known", "12.3k"), ("estimated", "~12.3k"), ("unknown", "?12.3k")])
def test_the_gauge_says_how_sure_it_is(known: str, shown: str) -> None:
    """P3: counted by the provider, partly estimated since, or a guess after a compaction."""
    assert numbers(12_345, 200_000, known).plain == f"{shown}/200k 6 %"  # type: ignore[arg-type]


def test_the_bar_is_as_full_as_the_window() -> None:
    assert bar(0, 1_000, LOOK).plain == "─" * 10
    assert bar(1, 1_000, LOOK).plain == "━" + "─" * 9
    assert bar(500, 1_000, LOOK).plain == "━━━━━─────"
    assert bar(5_000, 1_000, LOOK).plain == "━" * 10


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (12_345, "12.3k"), (199_960, "200k"), (1_250_000, "1.2M")],
)
def test_numbers_are_short(count: int, shown: str) -> None:
    assert short(count) == shown


def test_the_footer_has_everything_where_there_is_room() -> None:
    shown = footer(standing(auto=False, doing="writing"), LOOK, 120, waiting=2, below=7).plain
    for field in ("writing 0 s", "2 queued", "↓ 7 more", "83d702", "anthropic:claude", "holdfast", "auto-compact off"):
        assert field in shown
    assert shown.endswith("━─────────  12.3k/200k 6 %") and len(shown) == 119


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 80])
def test_in_a_narrow_footer_what_matters_most_stays_longest(width: int) -> None:
    """P2: that automatic compaction is off is seen even in 40 columns, while something runs."""
    shown = footer(standing(auto=False, doing="writing"), LOOK, width, waiting=2).plain
    assert len(shown) <= width
    if width >= 20:
        assert "12.3k/200k 6 %" in shown
    if width >= 30:
        assert "auto off" in shown or "auto-compact off" in shown
    if width >= 40:
        assert "auto-compact off" in shown
