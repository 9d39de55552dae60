"""A name whose lines are too long for the room is told without one, under what it was met in (H3)."""

from __future__ import annotations

import pytest
from ledger_story import Messages, noise, page_of, section, used, user

from holdfast import compact
from holdfast.ledger import reread
from holdfast.ledger.headings import ALSO, AT_HAND
from holdfast.ledger.names import stands_alone

SHORES = "and along the shore it goes by every post and every buoy that anybody ever laid there, "
TABLE = "\n".join(f"readTide{letter * 3}(station) {SHORES * 3}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def surveyed() -> Messages:
    return [user("Chart the shore."), *used("1", "read", TABLE, path="/srv/shore.py"), *noise(30), user("And now?")]


def told_alone(page: str) -> list[str]:
    return [name for line in section(page, AT_HAND) if line.startswith(ALSO) for name in line[len(ALSO) :].split(", ")]


def test_names_are_told_behind_the_lines_of_their_file() -> None:
    page = page_of(list(compact(surveyed(), budget=3_000, target=1_000).messages))
    told = told_alone(page)
    assert len(told) > 5 and all(name.startswith("readTide") for name in told)
    lines = section(page, AT_HAND)
    told_at = next(at for at, line in enumerate(lines) if line.startswith(ALSO))
    assert [line for line in lines[:told_at] if line.startswith("### ")][-1].startswith("### shore.py ")
    assert all(page.count(name) == 1 for name in told), "no name alone that stands on a line"


def test_they_are_read_back_and_stand_on_the_next_page() -> None:
    first = compact(surveyed(), budget=3_000, target=1_000)
    told = told_alone(page_of(list(first.messages)))
    ledger = reread(page_of(list(first.messages)))
    assert [line.text for line in ledger.lines if line.voice == "name"] == told
    again = compact([*first.messages, *noise(30, 100), user("And then?")], budget=3_000, target=1_000)
    assert len(set(told) & set(told_alone(page_of(list(again.messages))))) > len(told) // 2


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
def test_which_names_say_something_alone(name: str, line: str, alone: bool) -> None:
    assert stands_alone(name, line) is alone
