"""Sections of a page: citations, headings and order (H3)."""

from __future__ import annotations

import re

import pytest
from ledger_helpers import Messages, assistant, filler, notes_on, page_of, section, tool_use, user

from holdfast import compact
from holdfast.ledger import HistoryExtractor, PageRenderer, SectionRenderer, parse_page
from holdfast.ledger.headings import COMMANDS, CONCLUSIONS, EXCERPTS, GROUP, PLAN, STEPS, TASK, USER_MESSAGES
from holdfast.messages import decode_all
from holdfast.recall.tools import tool_definitions


def render(*steps: Messages, target: int = 1_500) -> str:
    return notes_on(
        [user("Mend the tide_table."), *(m for step in steps for m in step), *filler(20), user("Go.")], target
    )


def test_rooms_of_about_the_same_size_share_a_selection() -> None:
    read = tool_use("1", "Read", "\n".join(f"berth_{n} = depth_{n}" for n in range(200)), file_path="/srv/tides.py")
    messages = decode_all([user("Mend the tide_table."), *read])[0]
    history = HistoryExtractor()
    history.read(messages, range(1, len(messages) + 1))
    renderer = PageRenderer(SectionRenderer(history, 1_000))
    first, more, less = renderer.render(1_000), renderer.render(1_200), renderer.render(850)
    assert first.selection is more.selection is less.selection
    assert len(less.text) < len(first.text) < len(more.text) <= 1_200
    assert renderer.render(1_300).selection is not first.selection
    assert renderer.render(0).text == renderer.render(0).text


def groups(page: str) -> list[str]:
    return [line for line in section(page, EXCERPTS) if line.startswith(GROUP)]


def test_excerpt_heading_cites_every_message_of_its_lines() -> None:
    first = tool_use("1", "Read", "low_water = harbour_depth", file_path="/srv/tides.py")
    second = tool_use("2", "Read", "high_water = quay_height", file_path="/srv/tides.py")
    page = render(first, second)
    assert f"{GROUP}tides.py [3] [5]" in groups(page)
    assert {line.source for line in parse_page(page).lines if "water" in line.text} == {"/srv/tides.py"}


def test_files_of_equal_name_are_distinguished_by_folder() -> None:
    one = tool_use("1", "Read", "low_water = harbour_depth", file_path="/srv/north/tides.py")
    other = tool_use("2", "Read", "high_water = quay_height", file_path="/srv/south/tides.py")
    page = render(one, other)
    assert {f"{GROUP}north/tides.py [3]", f"{GROUP}south/tides.py [5]"} <= set(groups(page))
    sources = {line.text: line.source for line in parse_page(page).lines}
    assert sources["high_water = quay_height"] == "/srv/south/tides.py"


def test_plan_heading_cites_its_message() -> None:
    steps = [{"content": "sound the basin", "status": "pending"}]
    page = render(tool_use("1", "TodoWrite", "ok", todos=steps))
    assert f"{PLAN} [2]" in page.splitlines()
    again = parse_page(page)
    assert (again.plan, again.plan_place) == ([("sound the basin", "pending")], 2)


def test_conclusion_lines_keep_their_order() -> None:
    lines = [f"{at}. berth_{at} needs rope_{at} and lamp_{at}" for at in range(1, 7)]
    texts = ["\n".join(["What I found: " + "nothing yet, and so on, " * 40, *lines]), "Noted."]
    page = render([assistant(texts[0])], tool_use("1", "watch", "calm", hours=1))
    found = [int(match[1]) for line in section(page, CONCLUSIONS) if (match := re.search(r"berth_(\d)", line))]
    assert found and found == sorted(found)


def test_more_lines_of_the_task_are_listed_with_the_task() -> None:
    rules = "\n".join(f"- berth_{at} is kept for vessel_{at} of quay_{at}" for at in range(80))
    task = "Mend the plan. " + "It is long. " * 60 + "\n" + rules
    page = notes_on([user(task), assistant("Yes."), *filler(20), user("And now?")])
    assert "berth_" in "\n".join(section(page, TASK))
    assert not any("berth_" in line for line in section(page, USER_MESSAGES))


def test_user_messages_come_before_the_plan() -> None:
    steps = [{"content": "sound the basin", "status": "pending"}]
    asked = [user("Mind the lock_gate."), assistant("Yes.")]
    for messages in (
        [user("Mend it."), *asked, *tool_use("1", "TodoWrite", "ok", todos=steps), *filler(20), user("Go.")],
        [user("Mend it."), *asked, *tool_use("1", "TodoWrite", "ok", todos=steps), *filler(20)],
    ):
        titles = [line for line in notes_on(messages).splitlines() if line.startswith("## ")]
        at = {title: place for place, title in enumerate(titles)}
        assert at.get(USER_MESSAGES, -1) < next(place for title, place in at.items() if title.startswith(PLAN))


def test_last_steps_are_listed_in_order_before_the_messages_that_stay() -> None:
    """Words, tools and values on a short line each; calls that are listed with their outcome are left out."""
    read = tool_use("1", "Read", "low_water = 1", file_path=f"/srv/{'northern/' * 9}tables/tides.py", limit=40)
    read[0]["content"] = "# First\nthe tables."
    ran = tool_use("2", "Bash", "ok", command="make tides " + "--north " * 40)
    messages = [user("Mend it."), *read, *ran, *tool_use("3", "transfer", "booked", to="Miller"), *filler(20)]
    page = notes_on([*messages, user("Go.")])
    assert page.splitlines().index(STEPS) > page.splitlines().index(TASK + " [1]")
    path = f"[…]/{'northern/' * 7}tables/tides.py"
    assert section(page, STEPS)[:5] == ["[2] > # First the tables.", "Read", path, "40", "[4] Bash"]
    (command,) = section(page, STEPS)[5:]
    assert command.startswith("make tides --north ") and command.endswith(" […]") and len(command) < 90
    again = parse_page(page).steps
    assert (again[0].place, again[0].text) == (2, f"# First the tables.\nRead\n{path}\n40")


def test_last_steps_name_a_path_in_full_once() -> None:
    """The newest step has the path, older ones what tells the file from others of its name."""
    paths = ["/srv/north/tides.py", "/srv/south/tides.py", "/srv/quay.py", "/srv/north/tides.py", "/srv/quay.py"]
    reads = [tool_use(str(at), "Read", f"low_{at} = {at}", file_path=path) for at, path in enumerate(paths)]
    shown = [line for line in section(render(*reads), STEPS) if line.endswith(".py")]
    assert shown == ["north/tides.py", "/srv/south/tides.py", "quay.py", "/srv/north/tides.py", "/srv/quay.py"]
    deep = f"/srv/{'northern/' * 9}rope.py"
    reads = [tool_use(str(at), "Read", f"low_{at} = {at}", file_path=deep, limit=at) for at in range(2)]
    shown = [line for line in section(render(*reads), STEPS) if line.endswith(".py")]
    assert shown == ["rope.py", f"[…]/{'northern/' * 8}rope.py"]


def test_last_steps_leave_out_what_a_newer_step_shows() -> None:
    """Tools and files are named every time; a step that shows nothing else of its own is left out."""
    calls = [
        ("Bash", {"command": "make tides", "workdir": "/srv/quay", "timeout": 60}),
        ("Read", {"file_path": "/srv/quay.py", "limit": 40}),
        ("Bash", {"command": "make quay", "workdir": "/srv/quay", "timeout": 60}),
        ("Read", {"file_path": "/srv/quay.py", "limit": 40}),
        ("Bash", {"command": "make tides", "workdir": "/srv/quay", "timeout": 60}),
    ]
    page = render(*(tool_use(str(at), tool, "ok", **values) for at, (tool, values) in enumerate(calls)))
    assert [line for line in section(page, STEPS) if line] == [
        *("[4] Read", "quay.py"),
        *("[6] Bash", "make quay"),
        *("[8] Read", "/srv/quay.py", "40"),
        *("[10] Bash", "make tides", "/srv/quay", "60"),
    ]


def test_commands_among_the_last_steps_are_listed_again_only_with_their_runs() -> None:
    commands = ["make tides", "make lint", "make tides", "make quay"]
    page = render(*(tool_use(str(at), "Bash", "ok", command=command) for at, command in enumerate(commands)))
    assert {"make lint", "make quay"} <= set(section(page, STEPS))
    assert section(page, COMMANDS) == ["make tides  (2×)"]


def test_last_steps_are_carried_to_the_next_round() -> None:
    first = compact(
        [
            user("Mend it."),
            *tool_use("1", "Read", "low_water = 1", file_path="/srv/tides.py"),
            *filler(20),
            user("Go."),
        ],
        budget=3_000,
        target=1_500,
    )
    more = [*first.messages, *filler(20, 100), user("And then?")]
    for previous in (first.checkpoint, None):
        page = page_of(list(compact(more, budget=3_000, target=1_500, previous=previous).messages))
        assert section(page, STEPS) == ["[2] Read", "/srv/tides.py"]


def test_wrapper_lines_of_output_are_left_out() -> None:
    output = (
        "Chunk ID: a696c4\nWall time: 0.6 seconds\nindex 385357be..53749450 100644\n<system-reminder>\ntide_4711 is up"
        "\n<usage>total_tokens: 80319\ntool_uses: 37\nduration_ms: 153280</usage>"
    )
    page = render(tool_use("1", "look", output, berth="K7"), tool_use("2", "Read", output, file_path="/srv/log.py"))
    assert "tide_4711" in page
    assert not re.search(r"^(?:Chunk ID|Wall time|index |<system|<usage|tool_uses|duration)", page, re.MULTILINE)
    assert "→ Chunk ID" not in page


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_h1_page_promises_recall_only_where_the_model_has_its_tools(format: str) -> None:
    """Without the tools, nobody can show the model what is archived."""
    history = [user("Read all berths."), *filler(60), user("And now?")]
    without = page_of(list(compact(history, budget=3_000).messages))
    assert "archived" not in without.splitlines()[0] and "no longer shown" in without.splitlines()[0]
    recalling = page_of(list(compact(history, budget=5_000, tools=tool_definitions(format)).messages))
    assert "archived in full under the cited numbers: recall_read shows them" in recalling.splitlines()[0]
