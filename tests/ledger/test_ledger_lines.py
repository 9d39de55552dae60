"""Splitting text into lines: only a viewer's line numbers are removed, and no name is cut (H3)."""

from __future__ import annotations

import pytest

from holdfast.ledger.lines import find_error_lines, split_lines


def shown(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line, _ in split_lines(text)]


@pytest.mark.parametrize(
    "text",
    [
        "    48→low = 1\n    49→\n    50→high = 2",
        "48\tlow = 1\n49\t\n50\thigh = 2",
        "48:  low = 1\n50:  high = 2",
    ],
)
def test_split_lines_uses_numbers_printed_by_viewer(text: str) -> None:
    found = [(number, line.strip()) for number, line in shown(text)]
    assert found == [(48, "low = 1"), (50, "high = 2")]


def test_split_lines_reads_number_of_single_line() -> None:
    assert shown("     1→low = 1") == [(1, "low = 1")]


def test_split_lines_reads_each_line_by_its_own_separator() -> None:
    text = "  7→low = 1\n8\tmid → 2\n9\thigh\n12:  rope → mast\n1234567→far\n5 →loose\nplain → text"
    assert [(number, line.strip()) for number, line in shown(text)] == [
        (7, "low = 1"),
        (8, "mid → 2"),
        (9, "high"),
        (12, "rope → mast"),
        (5, "1234567→far"),
        (6, "5 →loose"),
        (7, "plain → text"),
    ]


@pytest.mark.parametrize(
    "text",
    ["404: Not Found", "4711\tOsterhaven\t12\n88123\tWesthaven\t7", "12: error: expected ';'\n19: warning: unused"],
)
def test_split_lines_keeps_numbers_of_tables(text: str) -> None:
    assert [line for _, line in shown(text)] == text.split("\n")


@pytest.mark.parametrize("separator", [" ", ",", ";"])
@pytest.mark.parametrize("count", [6_000, 40_000])
def test_split_lines_never_cuts_names_of_long_lines(separator: str, count: int) -> None:
    names = [f"reading_{at:05}_osterhaven" for at in range(count)]
    found = {name for _, line, _ in split_lines(separator.join(names)) for name in line.replace(separator, " ").split()}
    assert found and found <= set(names)


def test_split_lines_drops_words_longer_than_a_block() -> None:
    assert [line.strip() for _, line in shown("a" * 70_000 + " low_water")] == ["low_water"]


def test_find_error_lines_returns_whole_lines_only() -> None:
    error = "mount /srv/tides of worker-4711 gone: fatal error"
    for lines in range(19_970, 20_001):
        assert list(find_error_lines(error + "\n" + "y\n" * lines)) in ([], [(1, error)])


def test_find_error_lines_keeps_leading_numbers() -> None:
    assert list(find_error_lines("404: Not Found\nfine")) == [(1, "404: Not Found")]


@pytest.mark.parametrize(
    "line",
    [
        "=== RUN   TestMoor/unknown_berth_returns_error",
        "    --- PASS: TestMoor/unknown_berth_returns_error (0.00s)",
        "tests/test_moor.py::test_unknown_berth_is_an_error PASSED [ 50%]",
        "test moor::unknown_berth_fails ... ok",
        "  ✓ reports an error for an unknown berth (3 ms)",
    ],
)
def test_test_that_passed_is_no_error_whatever_its_name(line: str) -> None:
    failed = "FAIL: TestMoor/two_ships_returns_error"
    assert list(find_error_lines(f"{line}\n{failed}")) == [(2, failed)]


def test_quoted_text_is_split_at_its_escaped_line_ends() -> None:
    """An issue's text in a JSON string is one long line; its lines are whole."""
    body = r"\n".join(["# Moorings drift", "", *(f"- berth_{n} drifts at the tide of day {n}" for n in range(12))])
    split = split_lines(f'{{"title": "drift", "body": "{body}"}}')
    assert ("- berth_3 drifts at the tide of day 3", True) in [(line, whole) for _, line, whole in split]


def test_backslashes_inside_a_path_are_no_line_ends() -> None:
    text = r"C:\new\notes\next " * 30
    assert all(line.startswith("C:") for _, line, _ in split_lines(text))
