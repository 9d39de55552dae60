"""Hallucinated names in a summary (H3)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import compact
from holdfast.models import ScriptedModel
from holdfast.summaries import remove_hallucinated_names
from holdfast.summaries.verify import drop_empty_headings
from holdfast.triggers import always

WORDS = st.sampled_from(
    "pier mole crane tide never must K7 4711 /srv/a.py 港口 不要 müssen , . ! ? \n # - […]".split(" ")
)
PHRASES = st.lists(WORDS, max_size=30).map(" ".join)

HISTORY = (
    "Mend the API of the tide_table in /srv/tides.py; 12,345 rows, 500 ms, top 10, berth K7. 1 May 2024. RetryPolicy"
)


def kept(text: str, history: str = HISTORY) -> str:
    return remove_hallucinated_names(text, lambda: history).text


def test_list_item_with_only_hallucinated_names_is_removed_and_reported() -> None:
    found = remove_hallucinated_names(
        "## Done\n- Wrote ghost_table.py\n- Mended tides.py\n- All is well", lambda: HISTORY
    )
    assert found.text == "## Done\n- Mended tides.py\n- All is well"
    assert (found.hallucinated, found.removed_lines) == (
        ("ghost_table", "ghost_table.py"),
        ("- Wrote ghost_table.py",),
    )
    assert found.remarks == (
        "the summary contains names that do not occur in the history: ghost_table, ghost_table.py; "
        "1 lines with no other name were removed: - Wrote ghost_table.py",
    )


@pytest.mark.parametrize(
    "below",
    ["  - took out the loop", "\n   - took out the loop\n   - and all of tides.py", "  which loops", "\t1. the loop"],
)
def test_lines_indented_below_a_removed_item_are_removed_and_reported_with_it(below: str) -> None:
    """They would belong to the item above, and state something false about it."""
    known = "## Files\n- tides.py\n  - renamed a command"
    found = remove_hallucinated_names(f"{known}\n- ghost_table.py\n{below}\n\n- crane\n  - is red", lambda: HISTORY)
    assert found.text == f"{known}\n\n- crane\n  - is red"
    lines = below.strip("\n").split("\n")
    assert (found.removed_lines, found.removed_below) == (("- ghost_table.py",), tuple(lines))
    assert found.remarks[0].endswith(
        "1 lines with no other name were removed: - ghost_table.py"
        f"; and {len(lines)} lines below them: {'; '.join(map(str.strip, lines))}"
    )


def test_code_block_below_a_removed_item_is_removed_whole() -> None:
    block = "  ```sh\nmake\n\n- all\n  ```"
    assert kept(f"## Files\n- ghost_table.py\n{block}\n- tides.py") == "## Files\n- tides.py"


@pytest.mark.parametrize("below", ["- of the same depth", "and prose", "\n## Heading\n  text", "```\nmake\n```"])
def test_lines_not_indented_below_a_removed_item_stay(below: str) -> None:
    assert kept(f"## Done\n- tides.py\n- ghost_table.py\n{below}") == f"## Done\n- tides.py\n{below}"


@pytest.mark.parametrize("item", ["- {}", "* {}", "• {}", "  - {}", "3. {}", "3) {}", "| {} | Edited | at once |"])
def test_every_kind_of_list_item_is_removed(item: str) -> None:
    assert kept(f"## Done\nAll is well\n{item.format('ghost_table.py')}") == "## Done\nAll is well"


@pytest.mark.parametrize(
    "line",
    [
        "- Wrote ghost_table.py beside tides.py",
        "Wrote ghost_table.py in a sentence of its own.",
        "## ghost_table.py",
        "- [ ] Write ghost_table.py",
        "-  [ ] Write ghost_table.py",
        "- [] Write ghost_table.py",
    ],
)
def test_other_lines_with_hallucinated_names_stay(line: str) -> None:
    """A line with a known name, prose, a title or an open task stays; the name is reported."""
    found = remove_hallucinated_names(f"## Done\n{line}\n- All is well", lambda: HISTORY)
    assert line in found.text.splitlines()
    assert "ghost_table.py" in found.hallucinated
    assert found.removed_lines == ()


@pytest.mark.parametrize(
    "title",
    [
        "## Next Steps", "### Pending Work", "**To-Do**", "**Plan:**", "## Remaining", "OPEN THREADS", "Next steps:",
        "2. Open questions:", "## Nächste Schritte", "## Offene Punkte", "## 下一步", "## Próximos pasos",
    ],
)  # fmt: skip
def test_plans_may_contain_new_names(title: str) -> None:
    """Plans may name things that do not exist yet."""
    text = f"## Done\n- All is well\n{title}\n- Write ghost_table.py"
    assert kept(text) == text
    assert kept(f"{text}\n## Also\n- Wrote ghost_table.py\n- All is well") == f"{text}\n## Also\n- All is well"


@pytest.mark.parametrize("label", ["Next step", "**Next step**", "Immediate next step", "next action"])
def test_next_step_may_contain_new_names(label: str) -> None:
    """The next step is a plan in one line of the current state; the lines around it are not."""
    text = f"## Current State\n- All is well\n- {label}: write ghost_table.py"
    assert kept(f"{text}\n- Last completed: ghost_test.py") == text


def test_label_inside_a_plan_does_not_end_the_plan() -> None:
    text = "## Next Steps\nFiles:\n- ghost_table.py"
    assert kept(text) == text


def test_summary_is_never_emptied() -> None:
    """A summary is never blank."""
    found = remove_hallucinated_names("## Done\n- Wrote ghost_table.py", lambda: HISTORY)
    assert (found.text, found.removed_lines) == ("## Done\n- Wrote ghost_table.py", ())
    assert found.hallucinated


@pytest.mark.parametrize(
    "line",
    [
        "- Documented the APIs (e.g. the first one), i.e. all of them",
        "- There are 12345 rows, and 12.345 more",
        "- It times out after 500ms",
        "- Only the Top-10 are shown, in a 5-minute rhythm, 3-stufig",
        "- Der Server startet neu, d.h. die Sitzungen enden, u.a. um 3 p.m., siehe Nr.5 und Abb.3",
        "- Die Gezeitentafel von Osterhaven wurde in das neue Format überführt (Hafenmeister-Büro)",
        "- 港口的潮汐表已经转换为新的格式，泊位也检查过了",
        "- 已修改潮汐表tides.py并通过测试",
        "- HTTP and JSON and YAML",
    ],
)
def test_rewording_is_not_hallucination(line: str) -> None:
    found = remove_hallucinated_names(f"## Done\n{line}", lambda: HISTORY)
    assert (found.hallucinated, found.removed_lines) == ((), ())


@pytest.mark.parametrize("name", ["JavaScript", "2024-05-01", "30.9.2031", "2031"])
def test_rewordable_names_are_reported_but_not_removed(name: str) -> None:
    found = remove_hallucinated_names(
        f"## Done\n- All is well\n- It is {name} now", lambda: HISTORY.replace("2024", "this year")
    )
    assert name in found.hallucinated
    assert found.removed_lines == ()


def test_case_is_ignored_and_history_is_not_read_without_names() -> None:
    assert kept("## Done\n- Mended Tides.py and TIDE_TABLE and retrypolicy") == (
        "## Done\n- Mended Tides.py and TIDE_TABLE and retrypolicy"
    )

    def never() -> str:
        raise AssertionError("the history was read")

    assert remove_hallucinated_names("## Done\n- all is well", never).remarks == ()


@example(["pier", "- 4711"], "")
@given(
    st.lists(st.lists(WORDS, max_size=8).map(" ".join) | st.just("## Done") | st.just("- ghost_x.py"), max_size=12),
    PHRASES,
)
def test_check_only_removes_lines(lines: list[str], history: str) -> None:
    summary = "\n".join(lines)
    found = remove_hallucinated_names(summary, lambda: history)
    left = iter(summary.split("\n"))
    assert all(line in left for line in found.text.split("\n")), "the lines that are left, in their order"
    lost = list(filter(None, (Counter(summary.split("\n")) - Counter(found.text.split("\n"))).elements()))
    gone = list(filter(None, (*found.removed_lines, *found.removed_below)))
    headings = list((Counter(lost) - Counter(gone)).elements())
    assert not Counter(gone) - Counter(lost), "what is reported is gone"
    assert (found.removed_lines or not headings) and all(line.lstrip().startswith("#") for line in headings), (
        "L6: else only emptied headings"
    )
    assert all(any(name in line for name in found.hallucinated) for line in found.removed_lines)
    assert all(name.lower() not in history.lower() for name in found.hallucinated)


@given(st.lists(PHRASES, max_size=6).map("\n".join))
def test_quoted_history_is_never_hallucinated(history: str) -> None:
    assert remove_hallucinated_names(history, lambda: history).hallucinated == ()


_DONE, _RULES = "### Done\n- Mended tides.py", "### Rules\n- None below"
_ERRORS = "### Errors & Resolutions\n- ghost_table.py is gone"
_TABLE = "### Work\n| File | Action |\n|---|---|\n| ghost_table.py | mended |"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{_DONE}\n\n{_ERRORS}\n\n{_RULES}", f"{_DONE}\n\n{_RULES}"),
        (f"{_DONE}\n\n{_ERRORS}", _DONE),
        (f"## All\n{_TABLE}\n\n{_RULES}", f"## All\n{_RULES}"),
    ],
    ids=["in the middle", "at the end", "a table"],
)
def test_l6_heading_whose_items_were_all_removed_is_removed_too(text: str, shown: str) -> None:
    """Errors and resolutions only if there are any."""
    assert kept(text) == shown


@pytest.mark.parametrize(
    "text",
    ["## A\n### B\n- x", "# A\n```\n# no heading\n```", "Text.\n\n## A\n\ntext", "no heading"],
    ids=["a nested one", "a comment in code", "blank lines", "none"],
)
def test_headings_with_text_below_them_stay(text: str) -> None:
    assert drop_empty_headings(text) == text


def test_free_text_summary_has_no_empty_headings() -> None:
    model = ScriptedModel("## Done\n- They talked.\n\n## Errors\n\n## Next\n- Talk on.\n\n## Notes\n")
    messages = [{"role": role, "content": "about the piers " * 90} for _ in range(9) for role in ("user", "assistant")]
    result = compact(preset="goat", messages=messages, trigger=always, summarizer=model)
    assert result.summary == "## Done\n- They talked.\n\n## Next\n- Talk on."


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ('- The user said "sink all the ships"', False),
        ('- The user said "mend the API"', True),
        ("- The user said „mend the api of“", True),
        ("- Ran `make ghost --all`", False),
        ("- Ran `mend  the API`", True),
        ('- It is "quite done"', True),
    ],
)
def test_quotations_and_commands_are_verified_too(line: str, known: bool) -> None:
    """A quotation of at least three words, or a command of at least two; blanks and capitals do not count."""
    found = remove_hallucinated_names(f"## Done\n- All is well\n{line}", lambda: HISTORY)
    assert (line in found.text) == known
    assert bool(found.remarks) == (not known)


def test_id_of_an_item_is_no_name_and_lists_in_capitals_end_a_plan() -> None:
    text = "OPEN QUESTIONS:\n- [q1] ghost_table?\n\nARTIFACTS:\n- [a2] ghost.tar\n- [a3] tides.py"
    found = remove_hallucinated_names(text, lambda: HISTORY)
    assert found.text == text.replace("- [a2] ghost.tar\n", "")
    assert found.hallucinated == ("ghost.tar", "ghost_table")
