"""Names in a summary that nobody ever said (H3)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.summaries import checked

WORDS = st.sampled_from(
    "pier mole crane tide never must K7 4711 /srv/a.py 港口 不要 müssen , . ! ? \n # - […]".split(" ")
)
SAYINGS = st.lists(WORDS, max_size=30).map(" ".join)

HISTORY = (
    "Mend the API of the tide_table in /srv/tides.py; 12,345 rows, 500 ms, top 10, berth K7. 1 May 2024. RetryPolicy"
)


def kept(text: str, history: str = HISTORY) -> str:
    return checked(text, lambda: history).text


def test_a_list_item_that_speaks_only_of_what_nobody_said_goes_and_is_reported() -> None:
    found = checked("## Done\n- Wrote ghost_table.py\n- Mended tides.py\n- All is well", lambda: HISTORY)
    assert found.text == "## Done\n- Mended tides.py\n- All is well"
    assert (found.invented, found.removed) == (("ghost_table", "ghost_table.py"), 1)
    assert found.remarks == (
        "the summary names what occurs nowhere in the history: ghost_table, ghost_table.py; "
        "1 lines that told nothing else were removed",
    )


@pytest.mark.parametrize("item", ["- {}", "* {}", "• {}", "  - {}", "3. {}", "3) {}", "| {} | Edited | at once |"])
def test_items_of_every_kind(item: str) -> None:
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
def test_only_a_line_that_can_go_safely_goes(line: str) -> None:
    """What holds a known name besides, is prose, a title or an open task stays; the name is reported all the same."""
    found = checked(f"## Done\n{line}\n- All is well", lambda: HISTORY)
    assert line in found.text.splitlines()
    assert "ghost_table.py" in found.invented
    assert found.removed == 0


@pytest.mark.parametrize(
    "title",
    [
        "## Next Steps", "### Pending Work", "**To-Do**", "**Plan:**", "## Remaining", "OPEN THREADS", "Next steps:",
        "2. Open questions:", "## Nächste Schritte", "## Offene Punkte", "## 下一步", "## Próximos pasos",
    ],
)  # fmt: skip
def test_plans_are_left_alone(title: str) -> None:
    """What lies ahead may have names that nobody has used yet."""
    text = f"## Done\n- All is well\n{title}\n- Write ghost_table.py"
    assert kept(text) == text
    assert kept(f"{text}\n## Done\n- Wrote ghost_table.py") == f"{text}\n## Done", "until the next title"


def test_a_label_inside_a_plan_does_not_end_the_plan() -> None:
    text = "## Next Steps\nFiles:\n- ghost_table.py"
    assert kept(text) == text


def test_a_summary_that_would_have_nothing_left_is_left_alone() -> None:
    """DESIGN rule 2: a summary is never blank."""
    found = checked("## Done\n- Wrote ghost_table.py", lambda: HISTORY)
    assert (found.text, found.removed) == ("## Done\n- Wrote ghost_table.py", 0)
    assert found.invented


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
def test_nothing_is_invented_by_putting_it_in_other_words(line: str) -> None:
    found = checked(f"## Done\n{line}", lambda: HISTORY)
    assert (found.invented, found.removed) == ((), 0)


@pytest.mark.parametrize("name", ["JavaScript", "2024-05-01", "30.9.2031", "2031"])
def test_what_may_be_another_way_to_say_it_is_reported_and_stays(name: str) -> None:
    found = checked(f"## Done\n- All is well\n- It is {name} now", lambda: HISTORY.replace("2024", "this year"))
    assert name in found.invented
    assert found.removed == 0


def test_case_does_not_matter_and_no_name_means_no_look_at_the_history() -> None:
    assert kept("## Done\n- Mended Tides.py and TIDE_TABLE and retrypolicy") == (
        "## Done\n- Mended Tides.py and TIDE_TABLE and retrypolicy"
    )

    def never() -> str:
        raise AssertionError("nobody asked")

    assert checked("## Done\n- all is well", never).remarks == ()


@example(["pier", "- 4711"], "")
@given(
    st.lists(st.lists(WORDS, max_size=8).map(" ".join) | st.just("## Done") | st.just("- ghost_x.py"), max_size=12),
    SAYINGS,
)
def test_a_check_only_ever_takes_lines_out(lines: list[str], history: str) -> None:
    summary = "\n".join(lines)
    found = checked(summary, lambda: history)
    left = iter(summary.split("\n"))
    assert all(line in left for line in found.text.split("\n")), "the lines that are left, in their order"
    gone = list(filter(None, (Counter(summary.split("\n")) - Counter(found.text.split("\n"))).elements()))
    assert found.removed == len(gone)
    assert all(any(name in line for name in found.invented) for line in gone)
    assert all(name.lower() not in history.lower() for name in found.invented)


@given(st.lists(SAYINGS, max_size=6).map("\n".join))
def test_what_is_quoted_from_the_history_is_never_invented(history: str) -> None:
    assert checked(history, lambda: history).invented == ()
