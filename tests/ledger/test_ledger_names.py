"""Names: what a later step must spell exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.names import find_exact_names, find_names, is_clear_alone, name_kind


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (r'print("\nlowWater at six")', {"lowWater"}),
        (r'{"patch": "+\toldBerth := 1\n\tnewBerth := 2"}', {"oldBerth", "newBerth"}),
        (r'"tide\nHighWater"', {"HighWater"}),
        (r'"twice \\nlow_water"', {"low_water"}),
    ],
)
def test_find_names_ignores_letters_of_escapes_in_quoted_text(line: str, names: set[str]) -> None:
    assert {name for name in find_exact_names(line) if name_kind(name) == "code"} == names
    assert {name for name in find_names(line) if name_kind(name) == "code"} == names


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
def test_name_kind_classifies_by_spelling(name: str, kind: str) -> None:
    assert name_kind(name) == kind
    assert name in find_names(f"see {name} there")
    assert (name in find_exact_names(f"see {name} there")) == (kind != "word")


@given(st.text())
def test_find_exact_names_equals_names_without_plain_words(line: str) -> None:
    assert find_exact_names(line) == tuple(name for name in find_names(line) if name_kind(name) != "word")


@given(st.text(st.characters(codec="ascii")) | st.text("aB1_.-#/ \\"))
def test_find_names_agrees_for_ascii_and_unicode_lines(line: str) -> None:
    assert find_names(f"{line} ·") == find_names(f"{line} ,")


def test_find_names_keeps_letters_after_backslash_in_windows_paths() -> None:
    found = find_names(r"C:\tides\new_berths.py and lib\test_boats.py")
    assert {"new_berths.py", "test_boats.py"} <= set(found)


def test_name_after_escaped_tab_is_clear_alone() -> None:
    assert is_clear_alone("oldBerth", r'"+\toldBerth := 1"')
    assert not is_clear_alone("oldBerth", "veryoldBerth := 1")


def test_find_names_handles_many_backslashes_in_linear_time() -> None:
    assert find_names("\\" * 1_000_000) == ()
