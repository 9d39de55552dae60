"""From text to lines: no number that somebody meant is taken off, and no name is cut in two (H3)."""

from __future__ import annotations

import pytest

from holdfast.ledger.alarms import errors_in
from holdfast.ledger.lines import lines_of


def shown(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line, _ in lines_of(text)]


@pytest.mark.parametrize(
    "text",
    [
        "    48→low = 1\n    49→\n    50→high = 2",
        "48\tlow = 1\n49\t\n50\thigh = 2",
        "48:  low = 1\n50:  high = 2",
    ],
)
def test_a_viewers_numbers_are_the_lines_numbers(text: str) -> None:
    found = [(number, line.strip()) for number, line in shown(text)]
    assert found == [(48, "low = 1"), (50, "high = 2")]


def test_a_file_of_one_line_has_its_number_too() -> None:
    assert shown("     1→low = 1") == [(1, "low = 1")]


@pytest.mark.parametrize(
    "text",
    ["404: Not Found", "4711\tOsterhaven\t12\n88123\tWesthaven\t7", "12: error: expected ';'\n19: warning: unused"],
)
def test_a_tables_numbers_stay(text: str) -> None:
    assert [line for _, line in shown(text)] == text.split("\n")


@pytest.mark.parametrize("separator", [" ", ",", ";"])
@pytest.mark.parametrize("count", [6_000, 40_000])
def test_no_name_of_an_endless_line_is_cut_in_two(separator: str, count: int) -> None:
    names = [f"reading_{at:05}_osterhaven" for at in range(count)]
    found = {name for _, line, _ in lines_of(separator.join(names)) for name in line.replace(separator, " ").split()}
    assert found and found <= set(names)


def test_the_end_of_a_word_without_end_is_no_name() -> None:
    assert [line.strip() for _, line in shown("a" * 70_000 + " low_water")] == ["low_water"]


def test_an_error_is_told_whole_or_not_at_all() -> None:
    error = "mount /srv/tides of worker-4711 gone: fatal error"
    for lines in range(19_970, 20_001):
        assert list(errors_in(error + "\n" + "y\n" * lines)) in ([], [(1, error)])


def test_an_error_keeps_its_number() -> None:
    assert list(errors_in("404: Not Found\nfine")) == [(1, "404: Not Found")]
