"""A structured summary is written in one shape, and read from whatever a model makes of that shape (L6, L7, L15)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.summaries.structured import Removal, Sections, Work, write_body, write_sections
from holdfast.summaries.structured_text import read_sections

TASK = "Mend the tide tables of Osterhaven.\nAll of them, please."
WORKED = Sections(
    completed=(Work("src/tides.py", "Created", "Low water | high water"), Work("Makefile", "Modified", "")),
    decisions=("Heights are in centimetres",),
    working_on="Berth K7",
    last_completed="Berth K6",
    pending=("Berth K8", "Check the moon"),
    errors=("Table locked → waited for it",),
    constraints=("Never delete the archive folder",),
    context=("The harbour office closes at five",),
)
WRITTEN = """\
## Session Summary (Compaction Round 3)

### Original Task
Mend the tide tables of Osterhaven.
All of them, please.

### Completed Work
| File/Component | Action | Description |
|---|---|---|
| src/tides.py | Created | Low water \\| high water |
| Makefile | Modified |  |

### Key Technical Decisions
- Heights are in centimetres

### Current State
- Working on: Berth K7
- Last completed: Berth K6

### Pending Work
- [ ] Berth K8
- [ ] Check the moon

### Errors & Resolutions
- Table locked → waited for it

### Constraints
- Never delete the archive folder

### Critical Context
- The harbour office closes at five

This summary takes in 2 earlier rounds."""

HOSTILE = [
    "## Pending Work", "**Completed Work**", "Constraints:", "1. Errors", "- a", "* b", "- [x] done", "[ ] open",
    "| a | b | c |", "|---|---|---|", "---", "- - -", "None", "\\None", "\\\\n/a", "N/A", "-", "***", ":-:",
    "a\\|b", "a|", "\\", "\\\\", "\\|", "`", "```", "```json", "~~~", "<think>", "</think>", "<analysis>x</analysis>",
    "Working on: x", "Last completed: None", "… and 12 earlier items: see the archive", "</summary>",
    "This summary takes in 2 earlier rounds.", "Original Task", "# Session Summary", "مرحبا | بالعالم", "‏עברית‏",
    "修改 src/表.py | 表", "C:\\tides\\|x", "File/Component", "Action", "✅ x", "a → b", "**", "__x__",
]  # fmt: skip
"""What looks like structure when it stands alone on a line."""


def one_line(text: str) -> str:
    return " ".join(text.split())


LINES = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from([*HOSTILE, " ", "|", "\\", "-", "x"]), min_size=1, max_size=4).map("".join),
).map(one_line)
ITEMS = st.lists(LINES.filter(bool), max_size=4).map(tuple)
SECTIONS = st.builds(
    Sections,
    completed=st.lists(st.builds(Work, LINES, LINES, LINES).filter(lambda work: bool(work.text)), max_size=4).map(
        tuple
    ),
    decisions=ITEMS,
    working_on=LINES,
    last_completed=LINES,
    pending=ITEMS,
    errors=ITEMS,
    constraints=ITEMS,
    context=ITEMS,
    left_out=st.integers(0, 10_000),
)
TASKS = st.one_of(st.text(), st.lists(st.sampled_from([*HOSTILE, "words"]), max_size=5).map("\n".join))


def test_the_shape_of_a_summary() -> None:
    """L6, L15: the task as it was said, a table, lists, a checklist, and a count of the earlier rounds."""
    assert write_sections(WORKED, task=TASK, round=3) == WRITTEN


def test_what_was_written_is_read_back() -> None:
    assert read_sections(WRITTEN) == WORKED


def test_a_first_round_has_nothing_before_it_and_no_section_without_content() -> None:
    """L6, L7: errors only if there were any; "Unknown task" where none is known; no closing line in round one."""
    written = write_sections(Sections(), task=" ", round=1)
    assert "### Original Task\nUnknown task\n" in written
    for absent in ("Errors", "Constraints", "Critical", "earlier"):
        assert absent not in written
    assert read_sections(written) == Sections()


def test_items_that_were_left_out_are_told_and_read_back() -> None:
    written = write_body(Sections(left_out=12))
    assert written.endswith("\n\n… and 12 earlier items: see the archive")
    assert read_sections(written) == Sections(left_out=12)


def test_what_a_model_removed_is_never_written() -> None:
    assert "obsolete" not in write_sections(Sections(removed=(Removal("x", "obsolete"),)), task="t", round=1)


@given(sections=SECTIONS, task=TASKS, round=st.integers(1, 4))
def test_content_never_becomes_structure(sections: Sections, task: str, round: int) -> None:
    """L6: whatever items and task look like, the same sections are read back, and the task stands there verbatim."""
    written = write_sections(sections, task=task, round=round)
    assert read_sections(written) == sections
    assert not task.strip() or task in written


@example(sections=Sections(working_on="Berth K7"), task="</THINK>")
@example(sections=Sections(working_on="Berth K7"), task="```\n</think>")
@example(sections=Sections(context=("</think>",)), task="<THINK>")
@example(sections=Sections(context=("</analysis>",)), task="```\n<analysis>")
@given(sections=SECTIONS, task=TASKS)
def test_a_fence_or_thoughts_around_it_change_nothing(sections: Sections, task: str) -> None:
    written = write_sections(sections, task=task, round=2)
    assert read_sections(f"<think>\n## Pending Work\n- dream\n</think>\n{written}") == sections
    assert read_sections(f"Sure:\n``````markdown\n{written}\n``````\nAnything else?") == sections


@given(st.text() | TASKS)
def test_any_text_can_be_read(text: str) -> None:
    read = read_sections(text)
    assert read is None or read_sections(write_sections(read, task="t", round=1)) is not None


@pytest.mark.parametrize("text", ["", "I could not do that.", "## Overview\n- a", "# Session Summary\nAll is well."])
def test_without_any_of_our_headings_it_is_no_structured_summary(text: str) -> None:
    assert read_sections(text) is None


@pytest.mark.parametrize(
    "heading",
    [
        "# Pending Work", "#### pending work", "## **Pending Work**", "## 5. Pending Work:", "**Pending Work**",
        "**Pending Work:**", "5. **Pending Work**", "__PENDING WORK__", "## 📋 Pending Work (Next Steps)",
        "### Next Steps", "Pending Work:", "PENDING WORK", "5. Pending Work", "## Remaining Tasks", "## TODO",
    ],
)  # fmt: skip
def test_headings_as_models_write_them(heading: str) -> None:
    assert read_sections(f"Here it is.\n\n{heading}\n- [ ] Berth K8") == Sections(pending=("Berth K8",))


@pytest.mark.parametrize("bullet", ["- ", "* ", "• ", "•", "+ ", "1. ", "1) ", "- [ ] ", "* [] ", "  - ", "- ☐ ", ""])
def test_bullets_as_models_write_them(bullet: str) -> None:
    read = read_sections(f"## Pending Work\n{bullet}Berth K8\n\n{bullet}Berth K9")
    assert read == Sections(pending=("Berth K8", "Berth K9"))


@pytest.mark.parametrize("nothing", ["None", "- None.", "N/A", "- n/a", "-", "(none)", "*None yet*", "—", ""])
def test_words_for_nothing(nothing: str) -> None:
    assert read_sections(f"## Pending Work\n{nothing}\n## Errors & Resolutions\n{nothing}") == Sections()
    assert read_sections(f"## Pending Work\n- [ ] {nothing.removeprefix('- ')}") == Sections()


@pytest.mark.parametrize(
    "table",
    [
        "| File/Component | Action | Description |\n|---|:---:|---|\n| a.py | Created | x \\| y |",
        "File | Action | Description\n--- | --- | ---\na.py | Created | x | y",
        "| File | Action | Description |\n| a.py | Created | x | y |",
        "| a.py | Created | x \\| y |",
        "- a.py — Created — x | y",
    ],
)
def test_tables_as_models_write_them(table: str) -> None:
    assert read_sections(f"## Completed Work\n{table}") == Sections(completed=(Work("a.py", "Created", "x | y"),))


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("- **src/a.py** (Modified): new index", Work("src/a.py", "Modified", "new index")),
        ("- src/a.py: new index", Work("src/a.py", "", "new index")),
        ("- [x] Wrote the tests", Work("Wrote the tests")),
        ("| a.py | - | N/A |", Work("a.py")),
    ],
)
def test_work_that_is_not_in_a_table(line: str, work: Work) -> None:
    assert read_sections(f"## Completed Work\n{line}") == Sections(completed=(work,))


def test_a_checked_item_is_completed_work() -> None:
    read = read_sections("## Pending Work\n- [x] Berth K6\n- [ ] Berth K7\n- ✅ Berth K5")
    assert read == Sections(completed=(Work("Berth K6", "Done"), Work("Berth K5", "Done")), pending=("Berth K7",))


@pytest.mark.parametrize(
    "state",
    [
        "- Working on: Berth K7\n- Last completed: Berth K6",
        "**Working on:** Berth K7\n**Last completed**: Berth K6",
        "* **Working on**: Berth K7\n* last completed： Berth K6",
        "- Working on:\n  - Berth K7\n- Last completed: Berth K6",
    ],
)
def test_the_current_state_as_models_write_it(state: str) -> None:
    assert read_sections(f"## Current State\n{state}") == Sections(working_on="Berth K7", last_completed="Berth K6")


def test_a_state_without_labels_is_what_is_worked_on() -> None:
    """P24 has a section of its own for work in progress."""
    assert read_sections("## Current State\nThe tables load.") == Sections(working_on="The tables load.")
    read = read_sections("## In Progress\n- Berth K7\n## Current State\n- Branch: main")
    assert read == Sections(working_on="Berth K7", context=("Branch: main",))


def test_what_belongs_to_an_item_stays_with_it() -> None:
    read = read_sections("## Decisions\n- Use cm\n  - as before\n- Use\n  metres\n- Run\n  ```sh\n  make tides\n  ```")
    assert read == Sections(decisions=("Use cm; as before", "Use metres", "Run make tides"))


def test_a_table_of_errors_keeps_its_arrow() -> None:
    read = read_sections("### Errors and Resolutions\n| Error | Resolution |\n|---|---|\n| Locked | waited |")
    assert read == Sections(errors=("Locked → waited",))


def test_a_copied_task_is_read_past() -> None:
    """L7: the task comes from the log, whatever the answer makes of it."""
    read = read_sections("### Original Task\nMend it.\nConstraints:\n- none of ours\n\n### Pending Work\n- K8")
    assert read == Sections(pending=("K8",))
    assert read_sections("### Pending Work\n- K8\n\n### Original Task\n- Mend it.") == Sections(pending=("K8",))


@pytest.mark.parametrize(
    "line", ["Berth K6 → sold", "Berth K6 - sold", "Berth K6 — sold", "Berth K6: sold", "| Berth K6 | sold |"]
)
def test_what_was_removed_and_why(line: str) -> None:
    bullet = "" if line.startswith("|") else "- "
    read = read_sections(f"## Pending Work\n- None\n## Removed\n{bullet}{line}\n- Berth K7")
    assert read == Sections(removed=(Removal("Berth K6", "sold"), Removal("Berth K7", "")))


def test_a_section_of_the_models_own_is_context() -> None:
    """P24: nothing that an answer tells is thrown away because of its heading."""
    read = read_sections("## Pending Work\n- K8\n### Later\n- K9\n## Weather\n- Storm on Friday")
    assert read == Sections(pending=("K8", "Later", "K9"), context=("Storm on Friday",))
