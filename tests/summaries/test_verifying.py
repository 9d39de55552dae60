"""A summary held against the log: what it lost is put back, what it made up is found (H3, P13)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger import Ledger
from holdfast.ledger.entries import File
from holdfast.ledger.lines import Line
from holdfast.summaries import HEADING, verified
from holdfast.summaries.verifying import Verified

TASK = "Move the tide tables of Osterhaven to the new format."


def line(text: str, place: int) -> Line:
    return Line(text, "user", "", place, 0, place)


def changed(path: str, time: int = 0) -> File:
    return File(path, edits=2, place=time, time=time)


def ledger(*said: str, **more: object) -> Ledger:
    """A ledger in which the user said this, the first of it the task; messages are 1, 3, 5, …"""
    return Ledger(users=[line(text, 2 * at + 1) for at, text in enumerate(said)], **more)  # type: ignore[arg-type]


WORKED = ledger(
    TASK,
    "Never delete the archive folder. I like short answers very much.",
    plan=[("Convert the tables", "completed"), ("Check berth K7", "pending")],
    errors=[line("error: table locked", 8)],
    files=[changed("/srv/tides.py", 4), changed("/srv/berths.py", 6), File("/srv/read.py", reads=1, time=9)],
)


def under(section: str, title: str) -> list[str]:
    """The lines under a title."""
    found = re.search(rf"(?ms)^### {title}\n(.*?)(?:\n\n###|\Z)", section)
    return found[1].splitlines() if found else []


def put_back(summary: str, known: Ledger = WORKED, room: int = 4_000, visible: str = "") -> Verified:
    return verified(summary, visible, known, room, len)


# -- what is missing ------------------------------------------------------------------------------------------------


def test_h3_all_that_a_summary_does_not_tell_is_put_back_under_one_heading() -> None:
    """P13: files that were only read come last."""
    found = put_back("They worked.")
    assert found.section == (
        f"{HEADING}\n\n"
        f"### The task\n{TASK}\n\n"
        "### The user said\n[3] Never delete the archive folder. I like short answers very much.\n\n"
        "### Still to be done\n- Check berth K7\n\n"
        "### Last errors\n- error: table locked\n\n"
        "### Files changed\n/srv/: berths.py (edited 2×), tides.py (edited 2×)\n\n"
        "### Files read\n/srv/: read.py"
    )
    assert (found.put_back, found.left_out) == (7, 0)
    assert found.remarks == ("7 facts that the summary does not tell were put back from the log",)


def test_h3_what_the_summary_tells_is_not_told_again() -> None:
    found = put_back(f"{TASK} Changed: tides.py, berths.py, after a look at read.py. Still: error: table locked.")
    assert re.findall("### (.*)", found.section) == ["The user said", "Still to be done"]
    assert found.put_back == 3


def test_h3_what_stays_visible_need_not_be_told_either() -> None:
    found = put_back("They worked.", visible="Never delete the archive folder. I like short answers very much.")
    assert under(found.section, "The user said") == []


def test_h3_where_nothing_is_missing_there_is_no_section() -> None:
    everything = put_back("They worked.").section
    assert put_back(everything) == Verified("")
    assert put_back("They worked.", Ledger()) == Verified("")
    assert put_back("They worked.", Ledger()).remarks == ()


def test_sentences_stand_under_the_number_of_their_message_in_the_order_they_were_said() -> None:
    """Constraints come before what else was said where room is short, not where it is read."""
    known = ledger(
        TASK,
        "The harbour master is called Maria. Never wake her before seven. She signs every release.",
        "Berth K7 belongs to the pilots.",
    )
    assert under(put_back("They worked.", known).section, "The user said") == [
        "[3] The harbour master is called Maria. Never wake her before seven. She signs every release.",
        "[5] Berth K7 belongs to the pilots.",
    ]


def test_a_citation_can_be_looked_up_as_it_stands() -> None:
    """The numbers are those of the log, with the separators that citations have."""
    known = Ledger(users=[line(TASK, 1), line("Never delete the archive folder.", 1_204)])
    assert under(put_back(TASK, known).section, "The user said") == ["[1,204] Never delete the archive folder."]


def test_what_was_said_again_and_again_is_told_once_as_of_the_last_time() -> None:
    known = ledger(TASK, *["Please go on with the next harbour ticket."] * 40)
    found = put_back(TASK, known)
    assert under(found.section, "The user said") == ["[81] Please go on with the next harbour ticket."]
    assert (found.put_back, found.left_out) == (1, 0)


def test_a_wish_inside_a_task_that_is_put_back_is_not_told_twice() -> None:
    found = put_back("They worked.", ledger("Mend the pier of Osterhaven. Never touch the mole."))
    assert found.section.count("Never touch the mole.") == 1
    assert (found.put_back, found.left_out) == (2, 0)


def test_p13_files_stand_by_folder_newest_first_and_only_changed_ones() -> None:
    files = [changed(f"/srv/app/part{at}.py", at) for at in range(12)] + [changed("/etc/tide.conf", 50)]
    lines = under(put_back(TASK, ledger(TASK, files=files)).section, "Files changed")
    assert [text.partition(": ")[0] for text in lines] == ["/etc/", "/srv/app/", "/srv/app/"]
    assert lines[1].startswith("/srv/app/: part11.py (edited 2×), part10.py")


# -- within the room ------------------------------------------------------------------------------------------------


def test_room_for_some_goes_to_the_newest_wishes() -> None:
    """And what has none is counted, never silent."""
    known = ledger(TASK, *[f"Never touch pier {at} of the harbour." for at in range(100, 200)])
    found = put_back(TASK, known, room=600)
    told = under(found.section, "The user said")
    assert told[-1].endswith("pier 199 of the harbour.")
    assert [int(text.split("pier ")[1].split()[0]) for text in told] == list(range(200 - len(told), 200))
    assert found.put_back == len(told)
    assert found.left_out == 100 - len(told) > 0
    assert found.remarks[1] == f"{found.left_out} more had no room: they are in the archive"


def test_what_must_be_observed_comes_before_what_was_merely_said() -> None:
    said = [f"The gull number {at} sat on the pier all day." for at in range(40)]
    found = put_back(TASK, ledger(TASK, "Never delete the archive folder.", *said), room=500)
    assert "Never delete the archive folder." in found.section
    assert "gull number 39" in found.section
    assert "gull number 0 " not in found.section


def test_no_kind_takes_all_the_room() -> None:
    """A long task leaves room for wishes, wishes for open work, errors and files."""
    known = ledger(
        "Mend the pier. " * 400,
        *[f"Never touch berth {at} of the harbour." for at in range(100)],
        plan=[(f"Check crane {at}", "pending") for at in range(100)],
        errors=[line(f"error: crane {at} is locked", 900 + at) for at in range(3)],
        files=[changed(f"/srv/{at}/crane.py", at) for at in range(100)],
    )
    section = put_back("They worked.", known, room=3_000).section
    assert len(re.findall("### ", section)) == 5
    assert "[…]" in section.partition("### The user said")[0], "the task is cut, and the cut is marked"


@pytest.mark.parametrize("room", [-5, 0, 1, 20, len(HEADING)])
def test_no_room_no_section_and_all_of_it_counted(room: int) -> None:
    found = put_back("They worked.", room=room)
    assert (found.section, found.put_back, found.left_out) == ("", 0, 7)


WORDS = st.sampled_from(
    "pier mole crane tide never must K7 4711 /srv/a.py 港口 不要 müssen , . ! ? \n # - […]".split(" ")
)
SAYINGS = st.lists(WORDS, max_size=30).map(" ".join)
MEASURES = {"characters": len, "bytes": lambda text: len(text.encode()), "quarters": lambda text: -(-len(text) // 4)}


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    said = draw(st.lists(SAYINGS, max_size=8))
    return ledger(
        *said,
        plan=[(step, draw(st.sampled_from(["pending", "done"]))) for step in draw(st.lists(SAYINGS, max_size=3))],
        errors=[line(text, 90) for text in draw(st.lists(SAYINGS, max_size=4))],
        files=[
            changed(f"/srv/{name}", at)
            for at, name in enumerate("ab.py /c.md d e.f".split()[: draw(st.integers(0, 4))])
        ],
    )


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@given(known=ledgers(), summary=SAYINGS, room=st.integers(-10, 1_500))
def test_a_section_never_takes_more_than_its_room(measure: object, known: Ledger, summary: str, room: int) -> None:
    found = verified(summary, "", known, room, measure)  # type: ignore[arg-type]
    assert found.section == "" or measure(found.section) <= room  # type: ignore[operator]
    assert (found.section == "") == (found.put_back == 0)
    assert found.left_out >= 0


@given(known=ledgers(), summary=SAYINGS, room=st.integers(0, 1_500))
def test_a_section_says_nothing_that_is_not_in_the_ledger(known: Ledger, summary: str, room: int) -> None:
    """Every word of it is the log's, a title, a number of a message, or says what was done to a file."""
    section = put_back(summary, known, room).section
    noted = [entry.text for entry in (*known.users, *known.errors)] + [step for step, _ in known.plan]
    paths = [piece for file in known.files for piece in re.findall(r"\w+", file.path)]
    ours = "From the log word for The task user said Still to be done Last errors Files changed edited 2".split()
    numbers = [str(entry.place) for entry in known.users]
    words = set(re.findall(r"\w+", " ".join(noted))) | {*paths, *ours, *numbers}
    assert set(re.findall(r"\w+", section)) <= words


def test_a_section_is_put_back_though_its_text_is_denser_than_the_facts_before_it() -> None:
    """A long task in English, and wishes in Chinese that take four times the tokens a character."""
    known = ledger("Mend the pier, and then the mole. " * 600, *[f"不要动第{at}号泊位的起重机。" for at in range(400)])
    found = verified(
        "The pier and the mole are to be mended then.", "", known, 900, lambda text: len(text.encode()) // 3
    )
    assert found.put_back > 20
    assert len(found.section.encode()) // 3 <= 900
