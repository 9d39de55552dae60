"""Names, lines and words in the lab's text patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lab.text import (
    argument_values,
    call_labels,
    content_words,
    content_words_on,
    lines_of,
    names_in,
    names_on,
)
from lab_story import call


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see src/lab/page.py and README.md", {"page.py", "README.md"}),
        ("load_tides(tideTable, HighWater, HTTPServer)", {"load_tides", "tideTable", "HighWater", "HTTPServer"}),
        ("fixes #412 in v1.2.3 at 3fa9c1d2 on port 8080", {"#412", "v1.2.3", "3fa9c1d2", "8080"}),
        ("step2 of berth9", {"step2", "berth9"}),
        ("src/tides.ts(10,34): error in low.ts(name)", {"tides.ts"}),
        ("plain words, Sentence case, e.g. this one. And 12 of 99", set()),
        ("notes of ours point at [12] and [1,204]", set()),
        ("9load_tides of icon@2x.png, 12-tide.table.js", {"load_tides", "icon@2x.png", "12-tide.table.js"}),
        (r'print("\nlowWater\n\thigh_water") # lib\new_tide.py', {"lowWater", "high_water", "new_tide.py"}),
    ],
)
def test_names_in_text(text: str, names: set[str]) -> None:
    assert names_in(text) == names


@given(st.lists(st.text("ab_Z9.# \u4e2d", max_size=12).filter(lambda line: len(line.splitlines()) <= 1), max_size=6))
def test_names_and_words_of_text_equal_those_of_its_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert names_in(text) == set().union(*map(names_on, lines))
    assert content_words(text) == set().union(*map(content_words_on, lines))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("piece", ["\\", "A", "deadbeef", "1", "_", "-", "a-", "A.", "a.B-", "a@", "1_", "-1."])
def test_name_pattern_is_linear(piece: str) -> None:
    assert names_in(piece * (1_000_000 // len(piece))) == set()


def test_long_words_are_not_names() -> None:
    longest = "load_" + "x" * 295
    assert names_in(f"{longest} {longest}x tides.py") == {longest, "tides.py"}


def test_lines_drop_viewer_numbers() -> None:
    assert list(lines_of("  12→def a():\n  13→\n14\treturn 1\nplain")) == ["def a():", "return 1", "plain"]


def test_call_values_and_labels() -> None:
    made = call("TaskRunner", subagent_type="plan", nested=[{"inner_key": 7}]).calls[0]
    assert sorted(argument_values(made)) == ["7", "plan"]
    assert {"TaskRunner", "subagent_type", "inner_key"} <= set(call_labels(made))
