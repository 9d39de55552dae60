"""A page in its parts: where a thing stands, of what it is, and in which order (H3)."""

from __future__ import annotations

import re

from ledger_story import Messages, noise, notes_on, said, section, used, user

from holdfast.ledger import reread
from holdfast.ledger.headings import AT_HAND, GROUP, PLAN, SAID, TASK, USER


def told(*steps: Messages, target: int = 1_500) -> str:
    return notes_on(
        [user("Mend the tide_table."), *(m for step in steps for m in step), *noise(20), user("Go.")], target
    )


def groups(page: str) -> list[str]:
    return [line for line in section(page, AT_HAND) if line.startswith(GROUP)]


def test_every_message_is_cited_that_lines_under_a_heading_stand_in() -> None:
    first = used("1", "Read", "low_water = harbour_depth", file_path="/srv/tides.py")
    second = used("2", "Read", "high_water = quay_height", file_path="/srv/tides.py")
    page = told(first, second)
    assert f"{GROUP}tides.py [3] [5]" in groups(page)
    assert {line.source for line in reread(page).lines if "water" in line.text} == {"/srv/tides.py"}


def test_files_that_are_called_the_same_are_told_apart() -> None:
    one = used("1", "Read", "low_water = harbour_depth", file_path="/srv/north/tides.py")
    other = used("2", "Read", "high_water = quay_height", file_path="/srv/south/tides.py")
    page = told(one, other)
    assert {f"{GROUP}north/tides.py [3]", f"{GROUP}south/tides.py [5]"} <= set(groups(page))
    sources = {line.text: line.source for line in reread(page).lines}
    assert sources["high_water = quay_height"] == "/srv/south/tides.py"


def test_a_plan_says_when_it_was_made() -> None:
    steps = [{"content": "sound the basin", "status": "pending"}]
    page = told(used("1", "TodoWrite", "ok", todos=steps))
    assert f"{PLAN} [2]" in page.splitlines()
    again = reread(page)
    assert (again.plan, again.plan_place) == ([("sound the basin", "pending")], 2)


def test_lines_of_what_was_said_stand_in_their_order() -> None:
    lines = [f"{at}. berth_{at} needs rope_{at} and lamp_{at}" for at in range(1, 7)]
    texts = ["\n".join(["What I found: " + "nothing yet, and so on, " * 40, *lines]), "Noted."]
    page = told([said(texts[0])], used("1", "watch", "calm", hours=1))
    found = [int(match[1]) for line in section(page, SAID) if (match := re.search(r"berth_(\d)", line))]
    assert found and found == sorted(found)


def test_more_of_the_task_stands_with_the_task() -> None:
    rules = "\n".join(f"- berth_{at} is kept for vessel_{at} of quay_{at}" for at in range(80))
    task = "Mend the plan. " + "It is long. " * 60 + "\n" + rules
    page = notes_on([user(task), said("Yes."), *noise(20), user("And now?")])
    assert "berth_" in "\n".join(section(page, TASK))
    assert not any("berth_" in line for line in section(page, USER))


def test_what_the_user_said_comes_before_the_plan() -> None:
    steps = [{"content": "sound the basin", "status": "pending"}]
    asked = [user("Mind the lock_gate."), said("Yes.")]
    for messages in (
        [user("Mend it."), *asked, *used("1", "TodoWrite", "ok", todos=steps), *noise(20), user("Go.")],
        [user("Mend it."), *asked, *used("1", "TodoWrite", "ok", todos=steps), *noise(20)],
    ):
        titles = [line for line in notes_on(messages).splitlines() if line.startswith("## ")]
        at = {title: place for place, title in enumerate(titles)}
        assert at.get(USER, -1) < next(place for title, place in at.items() if title.startswith(PLAN))


def test_what_only_wraps_an_output_is_not_told() -> None:
    output = (
        "Chunk ID: a696c4\nWall time: 0.6 seconds\nindex 385357be..53749450 100644\n<system-reminder>\ntide_4711 is up"
    )
    page = told(used("1", "look", output, berth="K7"), used("2", "Read", output, file_path="/srv/log.py"))
    assert "tide_4711" in page
    assert not re.search(r"^(?:Chunk ID|Wall time|index |<system)", page, re.MULTILINE)
    assert "→ Chunk ID" not in page
