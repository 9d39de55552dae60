"""Markdown of replies: its blocks, and that a block stays as it was drawn when it was finished."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from holdfast.chat.terminal.drawing import MIN_WIDTH
from holdfast.chat.terminal.markdown import MarkdownStream, render_markdown

EVERY_BLOCK = """\
# Berths
Forty of them, see `berths.py`:
- north
  - deep

    at high tide
- south

## Who waits
1. Petrel
1. Tern
   with her pilot

| Berth | Boat | Draught |
|---|:--:|--:|
| 1 | Petrel | 2 |
| 12 | Tern | 31 |

> Mind the pier.

```python
def hold(berth):
    return "free"
```
The end.
***
"""
DRAWN = """\
Berths
Forty of them, see berths.py:
 • north
    • deep

      at high tide
 • south

Who waits
 1. Petrel
 2. Tern
    with her pilot

Berth │  Boat  │ Draught
──────┼────────┼────────
1     │ Petrel │       2
12    │  Tern  │      31

┃ Mind the pier.

│ def hold(berth):
│     return "free"
The end.
────────────────────────────────"""


def render(text: str, width: int) -> list[str]:
    return [line.text.rstrip() for line in render_markdown(text, width)]


def test_every_block_is_drawn_with_its_structure() -> None:
    assert render(EVERY_BLOCK, 32) == DRAWN.split("\n")


def styles(text: str) -> dict[str, Style | None]:
    return {segment.text.strip(): segment.style for line in render_markdown(text, 60) for segment in line}


def test_headings_differ_and_code_has_colors_for_both_backgrounds() -> None:
    shown = styles(EVERY_BLOCK)
    headings = [shown["Berths"], shown["Who waits"]]
    assert all(one is not None and one.bold for one in headings) and headings[0] != headings[1]
    colors = {style.color.name for style in shown.values() if style is not None and style.color is not None}
    assert {"magenta", "green", "cyan"} <= colors <= {"magenta", "green", "cyan", "default"}


def test_table_uses_the_width_and_wraps_only_what_does_not_fit() -> None:
    words = "moors at noon and leaves with the tide"
    table = f"| boat | note |\n|---|---|\n| Petrel | {words} |\n| Tern | none |\n\nAfter."
    assert render(table, 60)[2:] == [f"Petrel │ {words}", "Tern   │ none", "", "After."]
    narrow = render(table, 30)
    assert narrow[2:4] == ["Petrel │ moors at noon and", "       │ leaves with the tide"]
    assert render("| a | b | c |\n|---|---|---|\n| one two | three four | five six |", 20) == [
        "a: one two",
        "b: three four",
        "c: five six",
    ]


def test_link_names_its_target_and_a_character_reference_is_no_control() -> None:
    assert render("[safe](http://evil) <http://pier>", 60) == ["safe (http://evil) http://pier"]
    assert render("a&#x202e;b&#x200b;c &#27;[31m", 60) == ["abc \ufffd[31m"]


SYNTAX = [
    "# ",
    "## ",
    "- ",
    "  - ",
    "1. ",
    "2. ",
    "> ",
    "```",
    "```py\n",
    "\n",
    "\n\n",
    "**",
    "`",
    "    ",
    "[x]: /y\n",
    "[x]",
]
TEXTS = ["word ", "two words", "日本", "\r", "\x1b[1m", "| a | b |\n", "|---|---|\n", "---\n"]
MARKDOWN = st.lists(st.sampled_from(SYNTAX + TEXTS), max_size=30)


@given(MARKDOWN, st.integers(MIN_WIDTH, 50), st.integers(1, 7))
def test_finished_lines_stay_and_the_end_changes_nothing(pieces: list[str], width: int, size: int) -> None:
    text = "".join(pieces)
    stream, finished = MarkdownStream(), list[str]()
    for start in range(0, len(text), size):
        stream.add(text[start : start + size])
        shown = [line.text for line in stream.lines(width)]
        assert shown[: len(finished)] == finished
        finished = [line.text for line in stream._drawn]
        assert all(line.cell_length <= width for line in stream.lines(width))
    shown = [line.text for line in stream.lines(width, complete=True)]
    assert shown[: len(finished)] == finished
    assert shown == [line.text for line in render_markdown(text, width)]


def test_long_stream_is_drawn_in_bounded_pieces() -> None:
    """A reply of many lines is not drawn anew at each redraw: finished lines are the same objects."""
    for text in (
        "- berth\n" * 3_000,
        "```py\n" + "free = 1\n" * 3_000,
        "word " * 6_000,
        "| a | b |\n|---|---|\n" * 1_300,
    ):
        stream = MarkdownStream()
        stream.add(text)
        before = stream.lines(60)
        stream.add("more\n")
        after = stream.lines(60)
        kept = sum(one is other for one, other in zip(before, after, strict=False))
        assert len(before) > 200 and len(before) - kept < 1_300, text[:20]
