"""What a name is to the ledger: what a later step would have to spell exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.names import exact_names_in, kind_of, names_in, stands_alone


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
    assert {name for name in exact_names_in(line) if kind_of(name) == "code"} == names
    assert {name for name in names_in(line) if kind_of(name) == "code"} == names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tides.py", "file"),
        ("tide-2.tar", "file"),
        ("lowWater", "code"),
        ("low_water", "code"),
        ("v1.2-rc", "code"),
        ("1.24.0", "number"),
        ("#1187", "number"),
        ("2026", "number"),
        ("42", "figure"),
        ("HTTP", "figure"),
        ("Berth", "proper"),
        ("harbour", "word"),
        ("港口", "wide"),
    ],
)
def test_a_name_is_what_it_looks_like(name: str, kind: str) -> None:
    assert kind_of(name) == kind
    assert name in names_in(f"see {name} there")
    assert (name in exact_names_in(f"see {name} there")) == (kind != "word")


@given(st.text())
def test_the_exact_names_of_a_line_are_its_names_without_the_plain_words(line: str) -> None:
    assert exact_names_in(line) == tuple(name for name in names_in(line) if kind_of(name) != "word")


@given(st.text(st.characters(codec="ascii")) | st.text("aB1_.-#/ \\"))
def test_a_line_is_read_alike_beside_signs_that_are_not_ascii(line: str) -> None:
    assert names_in(f"{line} ·") == names_in(f"{line} ,")


def test_in_a_path_of_windows_it_does() -> None:
    found = names_in(r"C:\tides\new_berths.py and lib\test_boats.py")
    assert {"new_berths.py", "test_boats.py"} <= set(found)


def test_a_name_behind_a_tab_in_quoted_text_says_something_alone() -> None:
    assert stands_alone("oldBerth", r'"+\toldBerth := 1"')
    assert not stands_alone("oldBerth", "veryoldBerth := 1")


def test_a_heap_of_backslashes_takes_no_longer_than_other_text() -> None:
    assert names_in("\\" * 1_000_000) == ()
