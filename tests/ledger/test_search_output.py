"""Search matches are listed under their file, not under the search (H3)."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, filler, notes_on, section, tool_use, user

from holdfast.ledger.headings import EXCERPTS
from holdfast.ledger.shell_files import is_search_command, parse_match, resolve_path

FOUND = "lib/tides.py:12:    low_water = read_table('osterhaven')\nlib/tides.py-13-    return low_water"


def searched(**asked: str) -> Messages:
    read = tool_use("1", "read", "import tide_tables", path="/srv/lib/tides.py")
    return [user("Mend the tides."), *read, *tool_use("2", "search", FOUND, **asked), *filler(30), user("And now?")]


@pytest.mark.parametrize("asked", [{"pattern": "low_water"}, {"command": "cd /srv && grep -rn -A1 low_water ."}])
def test_search_matches_are_listed_under_their_file(asked: dict[str, str]) -> None:
    lines = section(notes_on(searched(**asked)), EXCERPTS)
    assert "    low_water = read_table('osterhaven')" in lines
    assert not [line for line in lines if "lib/tides.py:12" in line]
    assert [line for line in lines if line.startswith("### tides.py ")]


def test_compiler_message_is_not_a_line_of_the_file() -> None:
    built = tool_use("1", "run", "lib/tides.go:12: lowWater is never used", command="go build ./... | grep -v ok")
    lines = section(notes_on([user("Mend it."), *built, *filler(30), user("And now?")]), EXCERPTS)
    assert "lib/tides.go:12: lowWater is never used" in lines


def test_parse_match_accepts_matches_and_context_lines() -> None:
    assert parse_match("a/b.py:7:x = 1") == ("a/b.py", 7, "x = 1")
    assert parse_match("a/b-c.py-8-  y") == ("a/b-c.py", 8, "  y")
    assert parse_match("a/b.py-9-") == ("a/b.py", 9, "")
    for line in ("a/b.py:7-x", "b.py: 7", "  a/b.py:7:x", "at 12:30:00", "a/b.py"):
        assert parse_match(line) is None, line


def test_blank_context_line_is_left_out() -> None:
    found = tool_use(
        "1", "Grep", "lib/tides.py:7:low_water = 3\nlib/tides.py-8-\nlib/tides.py-9-high_water = 5", pattern="w"
    )
    page = notes_on([user("Mend it."), *found, *filler(30), user("And now?")])
    assert "low_water = 3" in page and "tides.py-8" not in page


def test_is_search_command_recognizes_search_tools() -> None:
    for command in ("grep -n x a.py", "git grep x", "rg x src", "cd /srv && rg x", " ag x"):
        assert is_search_command(command), command
    for command in ("make | grep x", "grepx y", "echo grep x", "git log", "cd 'a b' && rg x"):
        assert not is_search_command(command), command


def test_resolve_path_finds_known_path_of_relative_name() -> None:
    known = ["/srv/lib/tides.py", "/srv/app/main.py"]
    assert resolve_path("./lib/tides.py", known) == "/srv/lib/tides.py"
    assert resolve_path("/srv/app/main.py", known) == "/srv/app/main.py"
    assert resolve_path("ides.py", known) == "ides.py"
