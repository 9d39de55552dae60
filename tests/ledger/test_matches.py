"""What a search found stands under the file it was found in, not under the search (H3)."""

from __future__ import annotations

import pytest
from ledger_story import Messages, noise, notes_on, section, used, user

from holdfast.ledger.headings import AT_HAND
from holdfast.ledger.matches import match_in, same_file
from holdfast.ledger.shell_files import is_search

FOUND = "lib/tides.py:12:    low_water = read_table('osterhaven')\nlib/tides.py-13-    return low_water"


def searched(**asked: str) -> Messages:
    read = used("1", "read", "import tide_tables", path="/srv/lib/tides.py")
    return [user("Mend the tides."), *read, *used("2", "search", FOUND, **asked), *noise(30), user("And now?")]


@pytest.mark.parametrize("asked", [{"pattern": "low_water"}, {"command": "cd /srv && grep -rn -A1 low_water ."}])
def test_the_lines_stand_under_their_file_without_its_path(asked: dict[str, str]) -> None:
    lines = section(notes_on(searched(**asked)), AT_HAND)
    assert "    low_water = read_table('osterhaven')" in lines
    assert not [line for line in lines if "lib/tides.py:12" in line]
    assert [line for line in lines if line.startswith("### tides.py ")]


def test_what_a_compiler_says_of_a_line_is_no_line_of_the_file() -> None:
    built = used("1", "run", "lib/tides.go:12: lowWater is never used", command="go build ./... | grep -v ok")
    lines = section(notes_on([user("Mend it."), *built, *noise(30), user("And now?")]), AT_HAND)
    assert "lib/tides.go:12: lowWater is never used" in lines


def test_which_lines_are_matches() -> None:
    assert match_in("a/b.py:7:x = 1") == ("a/b.py", 7, "x = 1")
    assert match_in("a/b-c.py-8-  y") == ("a/b-c.py", 8, "  y")
    assert match_in("a/b.py-9-") == ("a/b.py", 9, "")
    for line in ("a/b.py:7-x", "b.py: 7", "  a/b.py:7:x", "at 12:30:00", "a/b.py"):
        assert match_in(line) is None, line


def test_a_blank_line_beside_a_match_is_not_told() -> None:
    found = used(
        "1", "Grep", "lib/tides.py:7:low_water = 3\nlib/tides.py-8-\nlib/tides.py-9-high_water = 5", pattern="w"
    )
    page = notes_on([user("Mend it."), *found, *noise(30), user("And now?")])
    assert "low_water = 3" in page and "tides.py-8" not in page


def test_which_commands_search_files() -> None:
    for command in ("grep -n x a.py", "git grep x", "rg x src", "cd /srv && rg x", " ag x"):
        assert is_search(command), command
    for command in ("make | grep x", "grepx y", "echo grep x", "git log", "cd 'a b' && rg x"):
        assert not is_search(command), command


def test_a_file_has_one_path_wherever_a_search_was_run() -> None:
    known = ["/srv/lib/tides.py", "/srv/app/main.py"]
    assert same_file("./lib/tides.py", known) == "/srv/lib/tides.py"
    assert same_file("/srv/app/main.py", known) == "/srv/app/main.py"
    assert same_file("ides.py", known) == "ides.py"
