"""A plan that the user approved stands, whole, until it is done or replaced (H10)."""

from __future__ import annotations

from typing import Any

import pytest
from ledger_helpers import Messages, assistant, filler, notes_on, page_of, section, tool_use, user

from holdfast import compact
from holdfast.ledger.headings import APPROVED, APPROVED_ITEMS, PLAN

STEPS = [f"{n}. Mend the {what} before the tide turns." for n, what in enumerate(["hull", "mast", "keel"], 1)]
PLAN_TEXT = "\n".join(["# Refit of the Sea Otter", "", "The yard is ours until noon.", *STEPS])
SHOWN = ["> # Refit of the Sea Otter", "The yard is ours until noon.", *STEPS]
YES = "User has approved your plan. You can now start coding."
NO = "The user doesn't want to proceed with this tool use. The tool use was rejected."
FILE = "/home/mate/.claude/plans/otter.md"


def tool(id: str, result: str = YES, **arguments: Any) -> Messages:
    return tool_use(id, "ExitPlanMode", result, **arguments)


def write(text: str = PLAN_TEXT) -> Messages:
    return tool_use("w", "Write", "ok", file_path=FILE, content=text)


def approved_lines(*proposal: Messages, target: int = 1_500) -> list[str]:
    """The lines of the approved plan on the page, long after."""
    messages = [user("Refit the boat."), *(message for part in proposal for message in part), *filler(30)]
    return section(notes_on(messages, target), APPROVED)


@pytest.mark.parametrize(
    "proposal",
    [
        pytest.param([*tool("1", plan=PLAN_TEXT)], id="plan tool"),
        pytest.param(
            [*tool("1", f"{YES}\n\n## Approved Plan:\n{PLAN_TEXT}", plan="# Draft\nx")], id="edited by the user"
        ),
        pytest.param([*write(), *tool("1", allowedPrompts=[])], id="plan file and plan tool"),
        pytest.param([*write(), assistant("The plan is in otter.md. Shall I?"), user("Go ahead.")], id="plan file"),
        pytest.param([assistant(PLAN_TEXT), user("go")], id="numbered list"),
        pytest.param([assistant(f"So:\n<proposed_plan>\n{PLAN_TEXT}\n</proposed_plan>"), user("Implement the plan.")]),
    ],
)
def test_h10_approved_plan_is_on_the_page_verbatim(proposal: Messages) -> None:
    """What the user approved is the task of what follows."""
    assert approved_lines(proposal) == SHOWN


@pytest.mark.parametrize(
    "go", ["OK, go", "yes, do it!", "Ja, mach das so.", "Oui, vas-y", "Sí, adelante", "好的，开始吧"]
)
def test_h10_plan_is_approved_in_the_language_of_the_user(go: str) -> None:
    assert approved_lines([assistant(PLAN_TEXT), user(go)]) == SHOWN


@pytest.mark.parametrize(
    "proposal",
    [
        pytest.param([*tool("1", NO, plan=PLAN_TEXT)], id="rejected"),
        pytest.param([*tool("1", "The plan was not approved yet.", plan=PLAN_TEXT)], id="not yet"),
        pytest.param([assistant(PLAN_TEXT), user("go, but leave the keel")], id="with a change"),
        pytest.param(
            [assistant(PLAN_TEXT), user("Why the mast?"), assistant("It is old."), user("go")], id="asked first"
        ),
        pytest.param([assistant(PLAN_TEXT), *tool_use("1", "Look", "old", at="mast"), user("go")], id="went on itself"),
        pytest.param([assistant(PLAN_TEXT), user("And now?")], id="a question"),
        pytest.param([assistant("1. The hull is old."), user("go")], id="no list"),
        pytest.param([*tool_use("1", "subscribe", "approved", plan="monthly")], id="another kind of plan"),
    ],
)
def test_what_was_not_approved_is_no_task(proposal: Messages) -> None:
    assert approved_lines(proposal) == []


def test_h10_approved_plan_is_replaced_by_the_next() -> None:
    other = PLAN_TEXT.replace("mast", "rudder")
    assert approved_lines([*tool("1", plan=PLAN_TEXT), *tool("2", plan=other)]) == [
        line.replace("mast", "rudder") for line in SHOWN
    ]
    assert approved_lines([*tool("1", plan=PLAN_TEXT), *tool("2", NO, plan=other)]) == SHOWN


def test_h10_changes_of_the_plan_file_before_the_approval_count() -> None:
    edit = tool_use("e", "Edit", "ok", file_path=FILE, old_string="the mast", new_string="the rudder")
    assert approved_lines([*write(), *edit, *tool("1")]) == [line.replace("mast", "rudder") for line in SHOWN]


def test_h10_approved_plan_is_done_when_the_list_kept_since_is() -> None:
    """A list from before the approval says nothing of it."""
    done = tool_use("t", "TodoWrite", "ok", todos=[{"content": "Mend the hull", "status": "completed"}])
    half = tool_use(
        "h", "TodoWrite", "ok", todos=[{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]
    )
    plan = tool("1", plan=PLAN_TEXT)
    assert approved_lines([*plan, *done]) == []
    assert approved_lines([*plan, *half]) == SHOWN
    assert approved_lines([*done, *plan]) == SHOWN


LONG = "\n".join(
    [
        "# Refit",
        "- [x] Pay the yard",
        *(f"{n}. Caulk seam number {n}\n   {'with oakum and pitch ' * 9}" for n in range(1, 41)),
    ]
)


def test_h10_of_a_plan_beyond_a_quarter_of_the_target_the_open_items_stand() -> None:
    """The citation leads to the whole."""
    todo = [{"content": "Caulk seam number 1", "status": "completed"}, {"content": "x", "status": "pending"}]
    messages = [user("Refit."), *tool("1", plan=LONG), *tool_use("t", "TodoWrite", "ok", todos=todo), *filler(30)]
    page = notes_on(messages, 2_000)
    assert f"{APPROVED_ITEMS} [2]\n> # Refit\n2. Caulk seam number 2\n3. Caulk" in page
    assert "Pay the yard" not in page
    assert "with oakum and pitch with oakum" not in page
    plan = section(page, APPROVED_ITEMS)
    assert sum(map(len, plan)) <= 2_000


def test_h10_plan_within_a_quarter_of_a_larger_target_is_whole() -> None:
    messages = [user("Refit."), *tool("1", plan=LONG), *filler(120)]
    page = notes_on(messages, 12_000)
    assert f"{APPROVED} [2]\n" in page
    assert page.count("Caulk seam") == 40
    assert page.count("oakum") == LONG.count("oakum")


def test_h10_plan_that_was_handed_to_a_new_conversation_is_whole() -> None:
    """It is in the user's first words, of which the task has less room."""
    page = notes_on([user(f"Implement the following plan:\n\n{LONG}"), *filler(120), user("And now?")], 12_000)
    assert f"{APPROVED} [1]\n" in page and page.count("Caulk seam") >= 40
    short = notes_on([user(f"Implement the following plan:\n\n{PLAN_TEXT}"), *filler(30), user("And now?")])
    assert APPROVED not in short and set(SHOWN) <= set(short.splitlines())


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_h10_approved_plan_stands_through_later_rounds(with_checkpoint: bool) -> None:
    """By the checkpoint, and read back from the messages alone."""
    result = compact([user("Refit the boat."), *tool("1", plan=PLAN_TEXT), *filler(30)], budget=3_000, target=1_500)
    for round in range(1, 4):
        messages = [*result.messages, *filler(30, 30 * round)]
        result = compact(messages, budget=3_000, target=1_500, previous=result.checkpoint if with_checkpoint else None)
        assert section(page_of(list(result.messages)), APPROVED) == SHOWN


def test_h10_items_that_a_shortened_request_still_shows_are_not_repeated() -> None:
    """The newest request gives up its middle; the items of the plan that stood there are on the page."""
    messages = [user(f"Implement the following plan:\n\n{LONG}"), *filler(60)]
    done = compact(messages, budget=3_000, target=1_500)
    page, text = page_of(list(done.messages)), "\n".join(str(message.get("content")) for message in done.messages)
    assert section(page, APPROVED_ITEMS)
    assert "1. Caulk seam number 1\n" in text and not any(
        item == "1. Caulk seam number 1" for item in page.splitlines()
    )


def test_h10_approved_plan_that_is_still_visible_is_not_repeated() -> None:
    messages = [user("Refit."), *filler(30), *tool("1", plan=PLAN_TEXT), user("And?")]
    assert APPROVED not in notes_on(messages)


def test_to_do_list_of_the_agent_is_shown_next_to_the_approved_plan() -> None:
    todo = tool_use("t", "TodoWrite", "ok", todos=[{"content": "Mend the hull", "status": "pending"}])
    page = notes_on([user("Refit."), *tool("1", plan=PLAN_TEXT), *todo, *filler(30)])
    assert section(page, APPROVED) == SHOWN
    assert section(page, PLAN) == ["- Mend the hull (pending)"]
