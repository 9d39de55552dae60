"""Files that only searches named (H3)."""

from __future__ import annotations

from ledger_helpers import Messages, filler, notes_on, page_of, section, tool_use, user

from holdfast import compact
from holdfast.ledger.headings import FILES, FOUND

HITS = "\n".join(f"/srv/harbour/quay_{n}/mooring_{n}.go:{n}:{'x' * 60} {n}" for n in range(1, 60))


def searched(*more: Messages) -> Messages:
    grep = tool_use("g", "Grep", HITS, pattern="moor")
    return [user("Mend mooring_7.go."), *grep, *(message for part in more for message in part), *filler(100)]


def test_files_found_by_a_search_are_listed_by_their_paths() -> None:
    """A line of such a file need not be worth its heading, and yet the file is opened next."""
    found = section(notes_on(searched(), 8_000), FOUND)
    assert "/srv/harbour/quay_7/: mooring_7.go" in found


def test_files_that_were_opened_are_listed_as_such() -> None:
    page = notes_on(searched(tool_use("r", "Read", "moored", file_path="/srv/harbour/quay_7/mooring_7.go")), 8_000)
    assert not any("mooring_7.go" in line for line in section(page, FOUND))
    assert any("mooring_7.go" in line for line in section(page, FILES))


def test_list_of_found_files_takes_no_room_from_lines_where_there_is_little() -> None:
    assert section(notes_on(searched(), 1_500), FOUND) == []


def test_files_found_by_a_search_stay_listed_in_later_rounds() -> None:
    """By the checkpoint, and read back from the messages alone."""
    for with_checkpoint in (True, False):
        result = compact(searched(), budget=16_000, target=8_000)
        messages = [*result.messages, *filler(100, 100)]
        again = compact(messages, budget=16_000, target=8_000, previous=result.checkpoint if with_checkpoint else None)
        assert "/srv/harbour/quay_7/: mooring_7.go" in section(page_of(list(again.messages)), FOUND), with_checkpoint
