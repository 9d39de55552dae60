"""What a name is to the ledger: what a later step would have to spell exactly."""

from __future__ import annotations

import pytest

from holdfast.ledger.names import exact_names_in, names_in, stands_alone


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (r'print("\nlowWater at six")', {"lowWater"}),
        (r'{"patch": "+\toldBerth := 1\n\tnewBerth := 2"}', {"oldBerth", "newBerth"}),
        (r'"tide\nHighWater"', {"HighWater"}),
        (r'"twice \\nlow_water"', {"low_water"}),
    ],
)
def test_the_letter_of_a_line_end_or_a_tab_in_quoted_text_belongs_to_no_name(line: str, names: set[str]) -> None:
    assert {name for name, kind in exact_names_in(line) if kind == "code"} == names
    assert {name for name, kind in names_in(line) if kind == "code"} == names


def test_in_a_path_of_windows_it_does() -> None:
    found = {name for name, _ in names_in(r"C:\tides\new_berths.py and lib\test_boats.py")}
    assert {"new_berths.py", "test_boats.py"} <= found


def test_a_name_behind_a_tab_in_quoted_text_says_something_alone() -> None:
    assert stands_alone("oldBerth", r'"+\toldBerth := 1"')
    assert not stands_alone("oldBerth", "veryoldBerth := 1")


def test_a_heap_of_backslashes_takes_no_longer_than_other_text() -> None:
    assert names_in("\\" * 1_000_000) == ()
