"""log_section: a summary is verified against the log (H3, P13)."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.ledger import Ledger
from holdfast.ledger.entries import FileRecord
from holdfast.ledger.lines import LedgerLine
from holdfast.summaries import LOG_HEADING
from holdfast.summaries.log_section import Archived, LastRequest, RestoredFacts, log_section

TASK = "Move the tide tables of Osterhaven to the new format."


def line(text: str, place: int) -> LedgerLine:
    return LedgerLine(text, "user", "", place, 0, place)


def changed(path: str, time: int = 0) -> FileRecord:
    return FileRecord(path, edits=2, place=time, time=time)


def ledger(*messages: str, **more: object) -> Ledger:
    """A ledger with these user messages, the first of them the task; message numbers are 1, 3, 5, …"""
    return Ledger(users=[line(text, 2 * number + 1) for number, text in enumerate(messages)], **more)  # type: ignore[arg-type]


WORKED = ledger(
    TASK,
    "Never delete the archive folder. I like short answers very much.",
    plan=[("Convert the tables", "completed"), ("Check berth K7", "pending")],
    errors=[line("error: table locked", 8)],
    files=[changed("/srv/tides.py", 4), changed("/srv/berths.py", 6), FileRecord("/srv/read.py", reads=1, time=9)],
)


def under(section: str, title: str) -> list[str]:
    """The lines under a title."""
    found = re.search(rf"(?ms)^### {title}\n(.*?)(?:\n\n###|\Z)", section)
    return found[1].splitlines() if found else []


def restore(summary: str, known: Ledger = WORKED, room: int = 4_000, visible: str = "") -> RestoredFacts:
    return log_section(summary, visible, known, room, len)


# -- missing facts --------------------------------------------------------------------------------------------------


def test_h3_missing_facts_are_restored_under_one_heading() -> None:
    """P13: files that were only read come last."""
    found = restore("They worked.")
    assert found.section == (
        f"{LOG_HEADING}\n\n"
        f"### The task\n{TASK}\n\n"
        "### The user said\n[3] Never delete the archive folder. I like short answers very much.\n\n"
        "### Still to be done\n- Check berth K7\n\n"
        "### Last errors\n- error: table locked\n\n"
        "### Files changed\n/srv/: berths.py (edited 2×), tides.py (edited 2×)\n\n"
        "### Files read\n/srv/: read.py"
    )
    assert (found.restored, found.left_out) == (7, 0)
    assert found.remarks == ("7 facts missing from the summary were restored from the log",)


def test_h3_facts_in_the_summary_are_not_repeated() -> None:
    found = restore(f"{TASK} Changed: tides.py, berths.py, after a look at read.py. Still: error: table locked.")
    assert re.findall("### (.*)", found.section) == ["The user said", "Still to be done"]
    assert found.restored == 3


def test_h3_facts_in_visible_messages_are_not_repeated() -> None:
    found = restore("They worked.", visible="Never delete the archive folder. I like short answers very much.")
    assert under(found.section, "The user said") == []


def test_h3_nothing_missing_gives_no_section() -> None:
    everything = restore("They worked.").section
    assert restore(everything) == RestoredFacts("")
    assert restore("They worked.", Ledger()) == RestoredFacts("")
    assert restore("They worked.", Ledger()).remarks == ()


def test_sentences_are_grouped_by_message_in_order() -> None:
    """Constraints take precedence when room is short, but the order of the messages is kept."""
    known = ledger(
        TASK,
        "The harbour master is called Maria. Never wake her before seven. She signs every release.",
        "Berth K7 belongs to the pilots.",
    )
    assert under(restore("They worked.", known).section, "The user said") == [
        "[3] The harbour master is called Maria. Never wake her before seven. She signs every release.",
        "[5] Berth K7 belongs to the pilots.",
    ]


def test_citations_have_the_format_of_the_log() -> None:
    """Numbers of the log, with digit separators."""
    known = Ledger(users=[line(TASK, 1), line("Never delete the archive folder.", 1_204)])
    assert under(restore(TASK, known).section, "The user said") == ["[1,204] Never delete the archive folder."]


def test_repeated_facts_are_restored_once_with_the_last_citation() -> None:
    known = ledger(TASK, *["Please go on with the next harbour ticket."] * 40)
    found = restore(TASK, known)
    assert under(found.section, "The user said") == ["[81] Please go on with the next harbour ticket."]
    assert (found.restored, found.left_out) == (1, 0)


def test_constraint_inside_a_restored_task_is_not_repeated() -> None:
    found = restore("They worked.", ledger("Mend the pier of Osterhaven. Never touch the mole."))
    assert found.section.count("Never touch the mole.") == 1
    assert (found.restored, found.left_out) == (2, 0)


def test_p13_changed_files_are_listed_by_folder_newest_first() -> None:
    files = [changed(f"/srv/app/part{number}.py", number) for number in range(12)] + [changed("/etc/tide.conf", 50)]
    lines = under(restore(TASK, ledger(TASK, files=files)).section, "Files changed")
    assert [text.partition(": ")[0] for text in lines] == ["/etc/", "/srv/app/", "/srv/app/"]
    assert lines[1].startswith("/srv/app/: part11.py (edited 2×), part10.py")


# -- limited room --------------------------------------------------------------------------------------------------


def test_limited_room_goes_to_the_newest_constraints() -> None:
    """Facts that do not fit are counted."""
    known = ledger(TASK, *[f"Never touch pier {number} of the harbour." for number in range(100, 200)])
    found = restore(TASK, known, room=600)
    shown = under(found.section, "The user said")
    assert shown[-1].endswith("pier 199 of the harbour.")
    assert [int(text.split("pier ")[1].split()[0]) for text in shown] == list(range(200 - len(shown), 200))
    assert found.restored == len(shown)
    assert found.left_out == 100 - len(shown) > 0
    assert found.remarks[1] == f"{found.left_out} more did not fit: they are in the archive"


def test_h3_pasted_text_does_not_displace_the_users_other_statements() -> None:
    """One sentence of each message comes first, whether it is worded as a rule or not."""
    pasted = "\n".join(f"You must always describe step {number} of the procedure in detail." for number in range(60))
    notes = "\n".join(f"Step {number} of the old procedure took an hour or two." for number in range(60))
    known = ledger(TASK, "Never delete the archive.", "Frau Wendt signs every change of the schema.", pasted, notes)
    found = restore("They worked.", known, 1_200)
    stated = "\n".join(under(found.section, "The user said"))
    assert "Never delete the archive." in stated and "Frau Wendt signs every change of the schema." in stated
    assert stated.count("procedure in detail") > 1


def test_h3_files_that_were_read_have_room_next_to_many_statements() -> None:
    """P13: what a later round reads back lists them."""
    notes = "\n".join(f"Step {number} of the old procedure took an hour or two." for number in range(90))
    read = [FileRecord(f"/srv/harbor/{name}.py", reads=1, time=1) for name in ("tides", "berths", "moles")]
    known = ledger(TASK, notes, files=read)
    found = log_section("They worked.", "", known, 1_500, len, Archived(1, 9))
    assert "/srv/harbor/: tides.py, berths.py, moles.py" in found.section
    assert "old procedure" in found.section and len(found.section) <= 1_500


def test_h3_request_that_is_still_visible_is_the_task() -> None:
    """Words of the user from later messages are statements then, whichever of them is archived first."""
    steering = ledger("Call it Transcript in both cases.")
    archived = Archived(1, 9, last=LastRequest(3, "Change it."))
    section = log_section("They worked.", "", steering, 1_500, len, archived).section
    assert "### The task" in section, "the archived request came first"
    later = Ledger(users=[line("Call it Transcript in both cases.", 7)])
    section = log_section("They worked.", "", later, 1_500, len, archived).section
    assert "### The task" not in section and "the task is" not in section
    assert "[7] Call it Transcript in both cases." in section


def test_constraints_come_before_other_statements() -> None:
    statements = [f"The gull number {number} sat on the pier all day." for number in range(40)]
    found = restore(TASK, ledger(TASK, "Never delete the archive folder.", *statements), room=500)
    assert "Never delete the archive folder." in found.section
    assert "gull number 39" in found.section
    assert "gull number 0 " not in found.section


def test_no_kind_of_fact_takes_all_the_room() -> None:
    """A long task leaves room for constraints, constraints for open work, errors and files."""
    known = ledger(
        "Mend the pier. " * 400,
        *[f"Never touch berth {number} of the harbour." for number in range(100)],
        plan=[(f"Check crane {number}", "pending") for number in range(100)],
        errors=[line(f"error: crane {number} is locked", 900 + number) for number in range(3)],
        files=[changed(f"/srv/{number}/crane.py", number) for number in range(100)],
    )
    section = restore("They worked.", known, room=3_000).section
    assert len(re.findall("### ", section)) == 5
    assert "[…]" in section.partition("### The user said")[0], "the task is cut, and the cut is marked"


@pytest.mark.parametrize("room", [-5, 0, 1, 20, len(LOG_HEADING)])
def test_no_room_gives_no_section_and_counts_all_facts(room: int) -> None:
    found = restore("They worked.", room=room)
    assert (found.section, found.restored, found.left_out) == ("", 0, 7)


WORDS = st.sampled_from(
    "pier mole crane tide never must K7 4711 /srv/a.py 港口 不要 müssen , . ! ? \n # - […]".split(" ")
)
PHRASES = st.lists(WORDS, max_size=30).map(" ".join)
COUNTERS = {"characters": len, "bytes": lambda text: len(text.encode()), "quarters": lambda text: -(-len(text) // 4)}


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    messages = draw(st.lists(PHRASES, max_size=8))
    return ledger(
        *messages,
        plan=[(step, draw(st.sampled_from(["pending", "done"]))) for step in draw(st.lists(PHRASES, max_size=3))],
        errors=[line(text, 90) for text in draw(st.lists(PHRASES, max_size=4))],
        files=[
            changed(f"/srv/{name}", number)
            for number, name in enumerate("ab.py /c.md d e.f".split()[: draw(st.integers(0, 4))])
        ],
    )


@pytest.mark.parametrize("measure", COUNTERS.values(), ids=COUNTERS)
@example(known=ledger("", "pier mole tide"), summary="", room=57)
@given(known=ledgers(), summary=PHRASES, room=st.integers(-10, 1_500))
def test_section_never_exceeds_its_room(measure: object, known: Ledger, summary: str, room: int) -> None:
    found = log_section(summary, "", known, room, measure)  # type: ignore[arg-type]
    assert found.section == "" or measure(found.section) <= room  # type: ignore[operator]
    assert (found.section == "") == (found.restored == 0)
    assert found.left_out >= 0


@given(known=ledgers(), summary=PHRASES, room=st.integers(0, 1_500))
def test_section_contains_only_words_of_the_ledger(known: Ledger, summary: str, room: int) -> None:
    """Every word comes from the log, a title, a message number, or a file's edit count."""
    section = restore(summary, known, room).section
    logged = [entry.text for entry in (*known.users, *known.errors)] + [step for step, _ in known.plan]
    paths = [piece for file in known.files for piece in re.findall(r"\w+", file.path)]
    titles = "From the log word for The task user said Still to be done Last errors Files changed edited 2".split()
    numbers = [str(entry.place) for entry in known.users]
    words = set(re.findall(r"\w+", " ".join(logged))) | {*paths, *titles, *numbers}
    assert set(re.findall(r"\w+", section)) <= words


def test_section_fits_text_with_more_tokens_per_character() -> None:
    """A long English task, and Chinese constraints with four times the tokens per character."""
    known = ledger(
        "Mend the pier, and then the mole. " * 600, *[f"不要动第{number}号泊位的起重机。" for number in range(400)]
    )
    found = log_section(
        "The pier and the mole are to be mended then.", "", known, 900, lambda text: len(text.encode()) // 3
    )
    assert found.restored > 20
    assert len(found.section.encode()) // 3 <= 900
