"""Bars, preview lines and terminal-safe text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compaction.bars import bar
from holdfast.compaction.breakdown import preview_line
from holdfast.io.text import first_line, printable
from holdfast.messages import Message, Reasoning, ToolCall, user

AMOUNTS = st.lists(st.integers(0, 10_000), max_size=8)


@given(amounts=AMOUNTS, full=st.integers(1, 20_000), width=st.integers(1, 60), plain=st.booleans())
def test_bar_has_requested_width(amounts: list[int], full: int, width: int, plain: bool) -> None:
    drawn = bar([(amount, "red") for amount in amounts], full, width, plain=plain)
    assert drawn.cell_len == width
    assert plain is False or drawn.plain.isascii()


@given(amounts=AMOUNTS, full=st.integers(1, 20_000))
def test_bar_of_positive_amount_is_visible(amounts: list[int], full: int) -> None:
    drawn = bar([(amount, "red") for amount in amounts], full, 10).plain
    assert bool(drawn.strip()) == any(amounts)


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "    "), (1, "╸   "), (25, "━   "), (38, "━╸  "), (100, "━━━━"), (999, "━━━━")]
)
def test_bar_is_drawn_in_half_cells(amount: int, shown: str) -> None:
    assert bar([(amount, "red")], 100, 4).plain == shown


def test_bar_tiny_has_colour_of_largest_segment() -> None:
    drawn = bar([(3, "red"), (1, "blue")], 1_000, 10)
    assert [str(span.style) for span in drawn.spans if drawn.plain[span.start : span.end].strip()] == ["red"]


def test_bar_track_fills_width() -> None:
    assert bar([(50, "red")], 100, 4, track=True).plain == "━━──"
    assert bar([(50, "red")], 100, 4, track=True, plain=True).plain == "##.."


def test_printable_strips_control_sequences() -> None:
    assert printable("\x1b[31mred\x1b[0m \x1b]0;title\x07 a\rb\u202ec\x9b2J") == "red  ]0;title  a bc 2J"
    assert first_line("\n\n  \x1b[2J first \t line \n second") == "first line"


def test_preview_line_of_message() -> None:
    assert preview_line(user("\nhello\nthere")) == "hello"
    assert preview_line(Message("assistant", (ToolCall("c", "look", {"at": 1}),))) == '→ look {"at":1}'
    assert preview_line(Message("assistant", (Reasoning("hm"),))) == "(reasoning)"
    assert preview_line(Message("assistant", ())) == "(empty)"
