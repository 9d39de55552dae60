"""Structured summaries: rendering, and parsing of variants that models write (L6, L7, L15)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.summaries.structured import (
    CompletedWork,
    ExtraSection,
    RemovedItem,
    SummarySections,
    render_body,
    render_sections,
)
from holdfast.summaries.structured_parse import parse_sections

TASK = "Mend the tide tables of Osterhaven.\nAll of them, please."
WORKED = SummarySections(
    completed=(
        CompletedWork("src/tides.py", "Created", "Low water | high water"),
        CompletedWork("Makefile", "Modified", ""),
    ),
    decisions=("Heights are in centimetres",),
    working_on="Berth K7",
    last_completed="Berth K6",
    next_step="Edit src/tides.py, line 40",
    pending=("Berth K8", "Check the moon"),
    errors=("Table locked → waited for it",),
    constraints=("Never delete the archive folder",),
    context=("The harbour office closes at five",),
    extra=(ExtraSection("Weather", ("Storm on Friday:", "| Hour | Wind |", "|---|---|", "| 6 | 9 Bft |")),),
)
RENDERED = """\
## Session Summary (Compaction Round 3)

### Original Task
Mend the tide tables of Osterhaven.
All of them, please.

### Current State
- Working on: Berth K7
- Last completed: Berth K6
- Next step: Edit src/tides.py, line 40

### Completed Work
| File/Component | Action | Description |
|---|---|---|
| src/tides.py | Created | Low water \\| high water |
| Makefile | Modified |  |

### Key Technical Decisions
- Heights are in centimetres

### Pending Work
- [ ] Berth K8
- [ ] Check the moon

### Errors & Resolutions
- Table locked → waited for it

### Constraints
- Never delete the archive folder

### Critical Context
- The harbour office closes at five

### Other Sections

#### Weather
Storm on Friday:
| Hour | Wind |
|---|---|
| 6 | 9 Bft |

This summary takes in 2 earlier rounds."""

HOSTILE = [
    "## Pending Work", "**Completed Work**", "Constraints:", "1. Errors", "- a", "* b", "- [x] done", "[ ] open",
    "| a | b | c |", "|---|---|---|", "---", "- - -", "None", "\\None", "\\\\n/a", "N/A", "-", "***", ":-:",
    "a\\|b", "a|", "\\", "\\\\", "\\|", "`", "```", "```json", "~~~", "<think>", "</think>", "<analysis>x</analysis>",
    "Working on: x", "Next step: x", "Last completed: None", "… and 12 earlier items: see the archive", "</summary>",
    "This summary takes in 2 earlier rounds.", "Original Task", "# Session Summary", "مرحبا | بالعالم", "‏עברית‏",
    "修改 src/表.py | 表", "C:\\tides\\|x", "File/Component", "Action", "✅ x", "a → b", "**", "__x__",
    "Analysis:", "Summary:", "2. Fog:", "3. **Pending Tasks**:",
]  # fmt: skip
"""Texts that look like structure on a line of their own."""


def one_line(text: str) -> str:
    return " ".join(text.split())


LINES = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from([*HOSTILE, " ", "|", "\\", "-", "x"]), min_size=1, max_size=4).map("".join),
).map(one_line)
ITEMS = st.lists(LINES.filter(bool), max_size=4).map(tuple)
SECTIONS = st.builds(
    SummarySections,
    completed=st.lists(
        st.builds(CompletedWork, LINES, LINES, LINES).filter(lambda row: bool(row.text)), max_size=4
    ).map(tuple),
    decisions=ITEMS,
    working_on=LINES,
    last_completed=LINES,
    next_step=LINES,
    pending=ITEMS,
    errors=ITEMS,
    constraints=ITEMS,
    context=ITEMS,
    left_out=st.integers(0, 10_000),
)
TASKS = st.one_of(st.text(), st.lists(st.sampled_from([*HOSTILE, "words"]), max_size=5).map("\n".join))


def test_l6_l15_render_sections() -> None:
    """L6, L15: verbatim task, a table, lists, a checklist, and a count of earlier rounds."""
    assert render_sections(WORKED, task=TASK, round=3) == RENDERED


def test_parse_sections_reads_rendered_summary() -> None:
    assert parse_sections(RENDERED) == WORKED


def test_render_sections_first_round_omits_empty_sections() -> None:
    """L6, L7: no empty section and no empty line of the state; "Unknown task" without a task; no closing line."""
    rendered = render_sections(SummarySections(), task=" ", round=1)
    assert rendered == "## Session Summary (Compaction Round 1)\n\n### Original Task\nUnknown task"
    assert parse_sections(rendered) == SummarySections()
    state = render_body(SummarySections(next_step="Run make tides"))
    assert state == "### Current State\n- Next step: Run make tides"


def test_left_out_count_is_rendered_and_parsed() -> None:
    rendered = render_body(SummarySections(pending=("K8",), left_out=12))
    assert rendered.endswith("\n\n… and 12 earlier items: see the archive")
    assert parse_sections(rendered) == SummarySections(pending=("K8",), left_out=12)


def test_removed_items_are_never_rendered() -> None:
    assert "obsolete" not in render_sections(
        SummarySections(removed=(RemovedItem("x", "obsolete"),)), task="t", round=1
    )


@given(sections=SECTIONS, task=TASKS, round=st.integers(1, 4))
def test_l6_hostile_items_and_task_round_trip(sections: SummarySections, task: str, round: int) -> None:
    """L6: any items and task round-trip, and the task is verbatim."""
    rendered = render_sections(sections, task=task, round=round)
    assert parse_sections(rendered) == sections
    assert not task.strip() or task in rendered


@example(sections=SummarySections(working_on="Berth K7"), task="</THINK>")
@example(sections=SummarySections(working_on="Berth K7"), task="```\n</think>")
@example(sections=SummarySections(context=("</think>",)), task="<THINK>")
@example(sections=SummarySections(context=("</analysis>",)), task="```\n<analysis>")
@given(sections=SECTIONS, task=TASKS)
def test_parse_sections_ignores_fence_and_reasoning(sections: SummarySections, task: str) -> None:
    rendered = render_sections(sections, task=task, round=2)
    assert parse_sections(f"<think>\n## Pending Work\n- dream\n</think>\n{rendered}") == sections
    assert parse_sections(f"Sure:\n``````markdown\n{rendered}\n``````\nAnything else?") == sections


@given(st.text() | TASKS)
def test_parse_sections_accepts_any_text(text: str) -> None:
    read = parse_sections(text)
    assert read is None or parse_sections(render_sections(read, task="t", round=1)) is not None


@pytest.mark.parametrize("text", ["", "I could not do that.", "## Overview\n- a", "# Session Summary\nAll is well."])
def test_parse_sections_without_known_heading_is_none(text: str) -> None:
    assert parse_sections(text) is None


@pytest.mark.parametrize(
    "heading",
    [
        "# Pending Work", "#### pending work", "## **Pending Work**", "## 5. Pending Work:", "**Pending Work**",
        "**Pending Work:**", "5. **Pending Work**", "__PENDING WORK__", "## 📋 Pending Work (Next Steps)",
        "### Next Steps", "Pending Work:", "PENDING WORK", "5. Pending Work", "## Remaining Tasks", "## TODO",
        "7. Pending Tasks:", "7) **Pending Tasks**:",
    ],
)  # fmt: skip
def test_parse_sections_heading_variants(heading: str) -> None:
    assert parse_sections(f"Here it is.\n\n{heading}\n- [ ] Berth K8") == SummarySections(pending=("Berth K8",))


@pytest.mark.parametrize("bullet", ["- ", "* ", "• ", "•", "+ ", "1. ", "1) ", "- [ ] ", "* [] ", "  - ", "- ☐ ", ""])
def test_parse_sections_bullet_variants(bullet: str) -> None:
    read = parse_sections(f"## Pending Work\n{bullet}Berth K8\n\n{bullet}Berth K9")
    assert read == SummarySections(pending=("Berth K8", "Berth K9"))


NOTHING = [
    "None", "- None.", "N/A", "- n/a", "-", "(none)", "*None yet*", "—", "", "nothing", "- Nothing at the moment.",
    "Unknown", "not specified", "keine", "Nichts.", "aucune", "rien", "néant", "暂无", "なし",
    "- No pending work", "No errors occurred.", "None remaining", "No outstanding tasks",
    "- None stated", "no constraints", "Nothing to report", "*No decisions were made*", "Nothing in particular",
    "There are no open or pending items at the moment.", "No errors or issues were encountered in this session.",
    "No specific requirements stated by the user", "Not yet known",
]  # fmt: skip
INFORMATION = [
    "No tests for the parser yet", "None of the tests pass", "No errors in tides.py", "No work on weekends",
    "Nothing works", "Not found", "All errors are resolved", "All tasks but K8 are done", "None, waiting for the user",
    "No new dependencies", "No",
]  # fmt: skip


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("label", ["Working on", "Last completed", "Next step"])
def test_empty_state_is_not_rendered(label: str, nothing: str) -> None:
    read = parse_sections(f"## Current State\n- {label}: {nothing.removeprefix('- ')}\n## Decisions\n- Use cm")
    assert read == SummarySections(decisions=("Use cm",))
    assert render_body(read) == "### Key Technical Decisions\n- Use cm"


@pytest.mark.parametrize("nothing", NOTHING)
def test_parse_sections_none_variants(nothing: str) -> None:
    assert parse_sections(f"## Pending Work\n{nothing}\n## Errors & Resolutions\n{nothing}") == SummarySections()
    assert parse_sections(f"## Pending Work\n- [ ] {nothing.removeprefix('- ')}") == SummarySections()
    assert parse_sections(f"## Completed Work\n| {nothing.removeprefix('- ')} | - | N/A |") == SummarySections()


@pytest.mark.parametrize("item", INFORMATION)
def test_item_that_only_begins_like_none_is_information(item: str) -> None:
    read = parse_sections(f"## Current State\n- Next step: {item}\n## Pending Work\n- [ ] {item}")
    assert read == SummarySections(next_step=item, pending=(item,))


@pytest.mark.parametrize("ended", ["All work is complete", "All tasks have been completed!", "Everything is done."])
def test_statement_that_all_is_done_is_no_open_work_but_kept(ended: str) -> None:
    """It says more than nothing: left out, an earlier summary's open work would be restored against it."""
    assert parse_sections(f"## Pending Work\n- [ ] {ended}\n- [ ] K8") == SummarySections(
        pending=("K8",), context=(ended,)
    )
    assert parse_sections(f"## Current State\n{ended}") == SummarySections(working_on=ended)


def test_sentence_that_is_one_cell_of_a_row_is_information() -> None:
    read = parse_sections("## Completed Work\n| tides.py | Checked | No errors found |")
    assert read == SummarySections(completed=(CompletedWork("tides.py", "Checked", "No errors found"),))
    assert parse_sections(render_body(read)) == read
    assert "| tides.py | Checked | No errors found |" in render_body(read)


@pytest.mark.parametrize("nothing", NOTHING)
def test_escaped_none_is_an_item(nothing: str) -> None:
    sections = SummarySections(pending=(nothing.removeprefix("- "), "K8"), context=("\\No errors",))
    kept = SummarySections(pending=tuple(filter(None, sections.pending)), context=sections.context)
    assert parse_sections(render_body(sections)) == kept


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
def test_parse_sections_table_variants(table: str) -> None:
    assert parse_sections(f"## Completed Work\n{table}") == SummarySections(
        completed=(CompletedWork("a.py", "Created", "x | y"),)
    )


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("- **src/a.py** (Modified): new index", CompletedWork("src/a.py", "Modified", "new index")),
        ("- src/a.py: new index", CompletedWork("src/a.py", "", "new index")),
        ("- [x] Wrote the tests", CompletedWork("Wrote the tests")),
        ("- __init__.py: exports", CompletedWork("__init__.py", "", "exports")),
        ("| a.py | - | N/A |", CompletedWork("a.py")),
    ],
)
def test_parse_sections_completed_work_outside_a_table(line: str, row: CompletedWork) -> None:
    assert parse_sections(f"## Completed Work\n{line}") == SummarySections(completed=(row,))


def test_parse_sections_checked_item_is_completed() -> None:
    read = parse_sections("## Pending Work\n- [x] Berth K6\n- [ ] Berth K7\n- ✅ Berth K5")
    assert read == SummarySections(
        completed=(CompletedWork("Berth K6", "Done"), CompletedWork("Berth K5", "Done")), pending=("Berth K7",)
    )


@pytest.mark.parametrize(
    "state",
    [
        "- Working on: Berth K7\n- Last completed: Berth K6\n- Next step: make tides",
        "**Working on:** Berth K7\n**Last completed**: Berth K6\n**Next step:** make tides",
        "**Next step:** make tides\n**Working on:** Berth K7\n**Last completed**: Berth K6",
        "* **Working on**: Berth K7\n* last completed： Berth K6\n* Immediate next step: make tides",
        "- Working on:\n  - Berth K7\n- Last completed: Berth K6\n- Next step:\n  - make tides",
        "- Working on: Berth K7\n- Last completed: Berth K6\n## Next Step\nmake tides",
        "- Working on: Berth K7\n- Last completed: Berth K6\n### 9. Optional Next Step:\n- make tides",
    ],
)
def test_parse_sections_current_state_variants(state: str) -> None:
    assert parse_sections(f"## Current State\n{state}") == SummarySections(
        working_on="Berth K7", last_completed="Berth K6", next_step="make tides"
    )


def test_parse_sections_state_without_labels_is_current_work() -> None:
    """P24 has a separate section for work in progress."""
    assert parse_sections("## Current State\nThe tables load.") == SummarySections(working_on="The tables load.")
    read = parse_sections("## In Progress\n- [ ] Berth K7\n## Current State\n- Branch: main")
    assert read == SummarySections(working_on="Berth K7", context=("Branch: main",))


def test_parse_sections_joins_continuation_lines() -> None:
    read = parse_sections("## Decisions\n- Use cm\n  - as before\n- Use\n  metres\n- Run\n  ```sh\n  make tides\n  ```")
    assert read == SummarySections(decisions=("Use cm; as before", "Use metres", "Run make tides"))


def test_lines_of_a_code_block_in_an_item_stay_apart() -> None:
    code = "```bash\n  git tag v1\n\n    git push\n  rm -rf dist\n```"
    read = parse_sections(f"## Pending Work\n- To release run:\n{code}\n## Context\n{code}")
    assert read == SummarySections(
        pending=("To release run: git tag v1 ⏎   git push ⏎ rm -rf dist",),
        context=("git tag v1 ⏎   git push ⏎ rm -rf dist",),
    )
    assert parse_sections(render_body(read)) == read


def test_parse_sections_box_alone_begins_an_item_on_the_next_line() -> None:
    read = parse_sections("## Pending Work\n- [ ] K7\n- [ ]\n  K8\n- [ ]\n")
    assert read == SummarySections(pending=("K7", "K8"))


def test_parse_sections_error_table() -> None:
    read = parse_sections("### Errors and Resolutions\n| Error | Resolution |\n|---|---|\n| Locked | waited |")
    assert read == SummarySections(errors=("Locked → waited",))


def test_parse_sections_skips_copied_task() -> None:
    """L7: the task comes from the log, not from the answer."""
    read = parse_sections("### Original Task\nMend it.\nConstraints:\n- none of ours\n\n### Pending Work\n- K8")
    assert read == SummarySections(pending=("K8",))
    assert parse_sections("### Pending Work\n- K8\n\n### Original Task\n- Mend it.") == SummarySections(pending=("K8",))


@pytest.mark.parametrize(
    "line", ["Berth K6 → sold", "Berth K6 - sold", "Berth K6 — sold", "Berth K6: sold", "| Berth K6 | sold |"]
)
def test_parse_sections_removed_items(line: str) -> None:
    bullet = "" if line.startswith("|") else "- "
    read = parse_sections(f"## Pending Work\n- None\n## Removed\n{bullet}{line}\n- Berth K7")
    assert read == SummarySections(removed=(RemovedItem("Berth K6", "sold"), RemovedItem("Berth K7", "")))


def test_parse_sections_unknown_section_is_kept() -> None:
    """P24: no item is dropped because of an unknown heading; a nested one is a part of the items below it."""
    read = parse_sections("## Pending Work\n- K8\n### Later\n- K9\n## Weather\n- Storm on Friday")
    assert read == SummarySections(
        pending=("K8", "Later: K9"), extra=(ExtraSection("Weather", ("- Storm on Friday",)),)
    )
