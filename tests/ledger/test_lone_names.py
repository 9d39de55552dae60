"""A name whose lines are too long for the room is listed alone, under its source (H3)."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, filler, page_of, section, tool_use, user

from holdfast import compact
from holdfast.ledger import parse_page
from holdfast.ledger.headings import ALSO, EXCERPTS
from holdfast.ledger.names import is_clear_alone

SHORES = "and along the shore it goes by every post and every buoy that anybody ever laid there, "
TABLE = "\n".join(f"readTide{letter * 3}(station) {SHORES * 3}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def surveyed() -> Messages:
    return [
        user("Chart the shore."),
        *tool_use("1", "read", TABLE, path="/srv/shore.py"),
        *filler(30),
        user("And now?"),
    ]


def lone_names(page: str) -> list[str]:
    return [name for line in section(page, EXCERPTS) if line.startswith(ALSO) for name in line[len(ALSO) :].split(", ")]


def test_lone_names_follow_the_lines_of_their_file() -> None:
    page = page_of(list(compact(surveyed(), budget=3_000, target=1_000).messages))
    lone = lone_names(page)
    assert len(lone) > 5 and all(name.startswith("readTide") for name in lone)
    lines = section(page, EXCERPTS)
    lone_at = next(at for at, line in enumerate(lines) if line.startswith(ALSO))
    assert [line for line in lines[:lone_at] if line.startswith("### ")][-1].startswith("### shore.py ")
    assert all(page.count(name) == 1 for name in lone), "no lone name is also on a line"


def test_lone_names_round_trip_to_the_next_page() -> None:
    first = compact(surveyed(), budget=3_000, target=1_000)
    lone = lone_names(page_of(list(first.messages)))
    ledger = parse_page(page_of(list(first.messages)))
    assert [line.text for line in ledger.lines if line.kind == "name"] == lone
    again = compact([*first.messages, *filler(30, 100), user("And then?")], budget=3_000, target=1_000)
    assert len(set(lone) & set(lone_names(page_of(list(again.messages))))) > len(lone) // 2


@pytest.mark.parametrize(
    ("name", "line", "alone"),
    [
        ("readTide", "x = readTide(station)", True),
        ("low_water", "tides.low_water = 3", True),
        ("tides.py", "see lib/tides.py", True),
        ("tides.py", "tides.py", True),
        ("5c581f0", "commit 5c581f0", True),
        ("27784", "id: 27784", True),
        ("tides.py", "self.tides.py()", False),
        ("tide_test", "lib/tide_test.go:3", False),
        ("tide_test", "my-tide_test", False),
        ("MUST", "you MUST", False),
        ("0o644", "mode 0o644", False),
        ("tide", "a tide", False),
    ],
)
def test_is_clear_alone_accepts_distinctive_names(name: str, line: str, alone: bool) -> None:
    assert is_clear_alone(name, line) is alone
