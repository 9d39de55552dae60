"""Headings of a structured answer: bold, in capitals, and inside a section (P24)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.summaries.structured import CompletedWork, ExtraSection, SummarySections, render_body
from holdfast.summaries.structured_headings import parse_heading
from holdfast.summaries.structured_parse import parse_sections


@pytest.mark.parametrize("bold", ["**{}**", "**{}:**", "**{}**:"])
def test_bold_line_among_bold_headings_opens_a_section(bold: str) -> None:
    titles = [bold.format(title) for title in ("Current State", "Files touched", "Pending", "Gotchas")]
    read = parse_sections("{}\n- K6\n\n{}\n- tides.py\n\n{}\n- [ ] K8\n\n{}\nnever as root\n".format(*titles))
    assert read == SummarySections(
        working_on="K6",
        pending=("K8",),
        extra=(ExtraSection("Files touched", ("- tides.py",)), ExtraSection("Gotchas", ("never as root",))),
    )


def test_line_in_capitals_that_contains_a_name_opens_that_section() -> None:
    read = parse_sections("CURRENT STATE\nWorking on: K7\n\nUSER PREFERENCES\n- no emojis\n\nALL ERRORS ARE GONE\n")
    assert read == SummarySections(
        working_on="K7", constraints=("no emojis",), extra=(ExtraSection("Overview", ("ALL ERRORS ARE GONE",)),)
    )


def test_line_in_capitals_among_headings_in_capitals_opens_a_section() -> None:
    read = parse_sections(
        "CURRENT STATE\n- K6\n\nFILES (TOUCHED)\n- a.py\nPENDING WORK:\n- K8\n  JSON API\nGOTCHAS:\n- root"
    )
    assert read == SummarySections(
        working_on="K6",
        pending=("K8 JSON API",),
        extra=(ExtraSection("FILES (TOUCHED)", ("- a.py",)), ExtraSection("GOTCHAS", ("- root",))),
    )


@pytest.mark.parametrize("line", ["**Mend the pier by Friday.**", "**Mend** the **pier**", "JSON API", "  **pier**"])
def test_other_bold_lines_and_capitals_are_text(line: str) -> None:
    read = parse_sections(f"**Pending Work**\n- K8\n\n{line}")
    assert read == SummarySections(pending=("K8", line.strip()))
    assert parse_sections(f"## Weather\n- Storm\n{line}\n## Pending Work\n- K8") == SummarySections(
        pending=("K8",), extra=(ExtraSection("Weather", ("- Storm", line)),)
    )


@pytest.mark.parametrize("heading", ["### High priority", "#### **High priority:**", "**High priority**"])
@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            "## Pending Work\n- K7\n{}\n- [ ] K8\n  soon\n- K9",
            {"pending": ("K7", "High priority: K8 soon", "High priority: K9")},
        ),
        ("## Errors\n{}\n| Locked | waited |", {"errors": ("High priority: Locked → waited",)}),
        (
            "## Completed Work\n{}\n| a.py | Edited | x |",
            {"completed": (CompletedWork("a.py", "Edited", "x (High priority)"),)},
        ),
        ("## Completed Work\n{}\n- a.py", {"completed": (CompletedWork("a.py", "", "High priority"),)}),
        ("## Current State\n{}\n- Working on: K7\n- Next step: None", {"working_on": "High priority: K7"}),
        ("## Pending Work\n- K7\n{}\n- [ ] None\n## Constraints\n- x", {"pending": ("K7",), "constraints": ("x",)}),
        ("## Decisions\n- K7\n{}", {"decisions": ("K7", "High priority")}),
        ("## Pending Work\n- K7\n{}", {"pending": ("K7",), "extra": (ExtraSection("Overview", ("High priority",)),)}),
    ],
)
def test_heading_inside_a_section_is_a_part_of_the_items_below_it(
    heading: str, section: str, expected: dict[str, Any]
) -> None:
    """It is never a task of its own."""
    read = parse_sections(section.format(heading))
    assert read == SummarySections(**expected)
    assert parse_sections(render_body(read)) == read


@pytest.mark.parametrize(
    "state",
    [
        "## Current State\n**Working on**\n- K7",
        "**Current State**\n**Working on**\n- K7",
        "## Current State\n### Working on:\nK7",
    ],
)
def test_label_of_the_state_may_be_a_heading(state: str) -> None:
    assert parse_sections(state) == SummarySections(working_on="K7")


def test_plain_heading_with_nothing_below_it_is_kept_and_no_task() -> None:
    read = parse_sections("**Constraints**\n**Never delete it**\n\n**Pending**\n- K8\n\n**Gotchas**")
    assert read == SummarySections(pending=("K8",), extra=(ExtraSection("Overview", ("Never delete it", "Gotchas")),))


@pytest.mark.parametrize("below", ["---", "```", "\n"])
def test_heading_inside_a_section_with_no_text_below_it_is_kept(below: str) -> None:
    assert parse_sections(f"## Decisions\n- K7\n### High priority\n{below}") == SummarySections(
        decisions=("K7", "High priority")
    )


@pytest.mark.parametrize(
    ("title", "section"),
    [
        ("Removed", "removed"), ("Removed items:", "removed"), ("**Dropped**", "removed"), ("Items Removed", "removed"),
        ("Removed from the earlier summary", "removed"), ("Removed Files", None), ("Dropped requirements", None),
        ("Errors removed from CI", None), ("User Request", None), ("User's goal", None), ("Request", None),
        ("Original Task", "task"), ("Task", "task"), ("Original user request", "task"), ("Issues", "errors"),
        ("Known issues", "errors"), ("Issues & Resolutions", "errors"), ("Issues and workarounds", "errors"),
        ("Issues encountered", "errors"), ("Problems", "errors"), ("Build errors", "errors"),
        ("Open GitHub issues", None), ("Issues to be filed", None),
    ],
)  # fmt: skip
def test_title_names_a_section(title: str, section: str | None) -> None:
    heading = parse_heading(f"### {title}")
    assert heading is not None and heading.section == section
