"""The original task stands in the notes of every round, put in by code (L7)."""

from __future__ import annotations

import pytest
from ledger_story import Messages, noise, notes_on, page_of, said, section, user

from holdfast import compact
from holdfast.ledger import reread
from holdfast.ledger.headings import TASK, USER

ASK = "Move the tide tables of Osterhaven to the new format by Friday, and keep berth K7 closed."


def test_the_first_user_message_is_the_task() -> None:
    page = notes_on([user(ASK), *noise(20), user("How far are you?")])
    assert f"{TASK} [1]" in page.splitlines()
    assert section(page, TASK) == [ASK]


@pytest.mark.parametrize("notice", ["[Request interrupted by user]", "<command-name>/clear</command-name>"])
def test_what_a_tool_says_in_the_users_name_is_no_task(notice: str) -> None:
    page = notes_on([user(notice), said("Ready."), user(ASK), *noise(20), user("How far are you?")])
    assert section(page, TASK) == [ASK]


def test_headings_in_what_was_said_are_no_headings_of_the_page() -> None:
    page = notes_on([user(f"## Plan\n{ASK}"), *noise(20), user("How far are you?")])
    assert section(page, TASK) == ["> ## Plan", ASK]


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_it_is_there_after_ten_rounds(with_checkpoint: bool) -> None:
    messages: Messages = [user(ASK)]
    checkpoint = None
    for round in range(10):
        messages += [*noise(20, 100 * round), said("Going on."), user(f"Go on with part {round}.")]
        result = compact(messages, budget=3_000, target=1_200, previous=checkpoint)
        assert result.outcome == "compacted"
        messages = list(result.messages)
        checkpoint = result.checkpoint if with_checkpoint else None
        page = page_of(messages)
        assert section(page, TASK) == [ASK]
        assert f"{TASK} [1]" in page.splitlines()


def test_of_a_task_that_is_too_long_head_and_tail_stay_and_the_cut_is_marked() -> None:
    long = f"Start with the FIRSTWORD. {'Then something in between. ' * 900}End with the LASTWORD."
    page = notes_on([user(long), *noise(20), user("And?")], 3_000)
    task = "\n".join(section(page, TASK))
    assert task.startswith("Start with the FIRSTWORD.")
    assert "[…]" in task
    assert task.endswith("End with the LASTWORD.")
    assert len(task) < len(long) / 3


def test_a_task_that_stays_visible_is_not_told_twice() -> None:
    messages = [user(ASK), *noise(20)]
    result = compact(messages, budget=3_000, target=1_500)
    assert messages[0] in result.messages
    assert TASK not in page_of(list(result.messages))


def test_headings_in_a_task_are_no_headings_of_the_page() -> None:
    page = notes_on([user("## Commands\nrun nothing\n## Goal\nbe quick"), *noise(20), user("And?")])
    assert section(page, TASK) == ["> ## Commands", "run nothing", "> ## Goal", "be quick"]


def test_what_a_tool_put_in_the_users_mouth_is_no_task() -> None:
    page = notes_on([user("<system-reminder>Be brief.</system-reminder>"), user(ASK), *noise(20), user("And?")])
    assert section(page, TASK) == [ASK]


def test_later_requests_follow_in_their_order() -> None:
    asked = ["First look at the log.", "Now mend the parser.", "Never touch the archive folder."]
    messages: Messages = [user(ASK)]
    for at, text in enumerate(asked):
        messages += [user(text), *noise(6, 10 * at), said("Done.")]
    page = notes_on([*messages, user("And?")])
    assert [line.partition("] ")[2] for line in section(page, USER) if line.startswith("[")] == asked


def test_what_the_user_said_and_no_page_has_room_for_is_counted() -> None:
    """L7: nothing of the user's goes without a word."""
    rules = [user(f"Rule {at}: " + f"the berth_{at} is never given away at night. " * 3) for at in range(60)]
    talk = [message for rule in rules for message in (rule, said("Noted."))]
    page = notes_on([user("Mind the rules."), said("Yes."), *talk, *noise(10), user("And now?")], 700)
    first, *told = section(page, USER)
    places = [int(line.partition("]")[0].removeprefix("[")) for line in told if line.startswith("[")]
    assert first == f"(Not told here: {60 - len(set(places))} earlier, from [3] on)"
    assert [line.place for line in reread(page).users][1:] == places


RULES = "# AGENTS.md instructions for /srv/tides\n\n<INSTRUCTIONS>\nNever touch berth K7.\n</INSTRUCTIONS>"


def test_rules_that_an_agent_puts_first_are_not_the_task() -> None:
    first = compact([user(RULES), user(ASK), *noise(20), user("How far?")], budget=3_000, target=1_500)
    more = [*noise(20, 100), user("And now?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    alone = compact([*first.messages, *more], budget=3_000, target=1_500)
    for result in (first, again, alone):
        page = page_of(list(result.messages))
        assert f"{TASK} [2]" in page and section(page, TASK) == [ASK]
        assert RULES.splitlines()[0] in "\n".join(section(page, USER))


@pytest.mark.parametrize("first", ["Base directory for this skill: /srv/skills/tides\n\n# Tides", "/mode"])
def test_what_nobody_said_to_the_agent_is_not_the_task(first: str) -> None:
    page = notes_on([user(first), user(ASK), *noise(20), user("How far?")])
    assert f"{TASK} [2]" in page and section(page, TASK) == [ASK]


def test_what_a_skill_says_is_not_the_user_s_word() -> None:
    skill = user("Base directory for this skill: /srv/skills/tides\n\nAlways sound the horn twice.")
    page = notes_on([user(ASK), skill, *noise(20), user("How far?")])
    assert "sound the horn" not in "\n".join(section(page, USER) + section(page, TASK))


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_what_went_uncounted_in_no_round(with_checkpoint: bool) -> None:
    """L7: round after round, every message of the user's is told or counted."""
    history: Messages = [user("Mind the rules."), said("Yes.")]
    previous = None
    for turn in range(4):
        wishes = [
            user(f"Rule {turn}.{at}: the berth_{turn}_{at} is never given away at night. " * 3) for at in range(25)
        ]
        history += [message for wish in wishes for message in (wish, said("Noted."))]
        result = compact([*history, user("And now?")], budget=1_600, target=800, previous=previous)
        page = page_of(list(result.messages))
        counted, *told = section(page, USER)
        entries = {line.partition("]")[0] for line in told if line.startswith("[")}
        left = int(counted.removeprefix("(Not told here: ").partition(" ")[0])
        kept = sum(message["role"] == "user" for message in result.messages) - 1  # the page is none of them
        assert left + len(entries) + kept == 25 * (turn + 1) + turn + 1
        history = [*result.messages, said("So.")]
        previous = result.checkpoint if with_checkpoint else None


def test_a_task_that_came_in_one_message_with_more_is_the_task_in_every_round() -> None:
    parts = [{"type": "text", "text": text} for text in (ASK, "Never push to main.")]
    first = compact(
        [{"role": "user", "content": parts}, *noise(20), user("How far?")],
        budget=3_000,
        target=1_500,
        format="openai-chat",
    )
    more = [*noise(20, 100), user("And now?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    for result in (first, again):
        assert section(page_of(list(result.messages)), TASK) == [ASK]
