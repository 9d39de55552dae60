"""The original task is in the notes of every round, inserted by code (L7)."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, assistant, filler, notes_on, page_of, section, user

from holdfast import compact
from holdfast.ledger import parse_page
from holdfast.ledger.headings import TASK, USER_MESSAGES

ASK = "Move the tide tables of Osterhaven to the new format by Friday, and keep berth K7 closed."


def test_task_is_the_first_user_message() -> None:
    page = notes_on([user(ASK), *filler(20), user("How far are you?")])
    assert f"{TASK} [1]" in page.splitlines()
    assert section(page, TASK) == [ASK]


@pytest.mark.parametrize("notice", ["[Request interrupted by user]", "<command-name>/clear</command-name>"])
def test_program_notice_in_user_role_is_not_the_task(notice: str) -> None:
    page = notes_on([user(notice), assistant("Ready."), user(ASK), *filler(20), user("How far are you?")])
    assert section(page, TASK) == [ASK]


def test_headings_in_user_text_are_quoted() -> None:
    page = notes_on([user(f"## Plan\n{ASK}"), *filler(20), user("How far are you?")])
    assert section(page, TASK) == ["> ## Plan", ASK]


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_task_is_kept_over_ten_rounds(with_checkpoint: bool) -> None:
    messages: Messages = [user(ASK)]
    checkpoint = None
    for round in range(10):
        messages += [*filler(20, 100 * round), assistant("Going on."), user(f"Go on with part {round}.")]
        result = compact(messages, budget=3_000, target=1_200, previous=checkpoint)
        assert result.outcome == "compacted"
        messages = list(result.messages)
        checkpoint = result.checkpoint if with_checkpoint else None
        page = page_of(messages)
        assert section(page, TASK) == [ASK]
        assert f"{TASK} [1]" in page.splitlines()


def test_task_too_long_keeps_head_and_tail() -> None:
    long = f"Start with the FIRSTWORD. {'Then something in between. ' * 900}End with the LASTWORD."
    page = notes_on([user(long), *filler(20), user("And?")], 3_000)
    task = "\n".join(section(page, TASK))
    assert task.startswith("Start with the FIRSTWORD.")
    assert "[…]" in task
    assert task.endswith("End with the LASTWORD.")
    assert len(task) < len(long) / 3


def test_task_still_visible_is_not_repeated() -> None:
    messages = [user(ASK), *filler(20)]
    result = compact(messages, budget=3_000, target=1_500)
    assert messages[0] in result.messages
    assert TASK not in page_of(list(result.messages))


def test_headings_in_task_are_quoted() -> None:
    page = notes_on([user("## Commands\nrun nothing\n## Goal\nbe quick"), *filler(20), user("And?")])
    assert section(page, TASK) == ["> ## Commands", "run nothing", "> ## Goal", "be quick"]


def test_program_tag_in_user_role_is_not_the_task() -> None:
    page = notes_on([user("<system-reminder>Be brief.</system-reminder>"), user(ASK), *filler(20), user("And?")])
    assert section(page, TASK) == [ASK]


def test_later_requests_are_listed_in_order() -> None:
    asked = ["First look at the log.", "Now mend the parser.", "Never touch the archive folder."]
    messages: Messages = [user(ASK)]
    for at, text in enumerate(asked):
        messages += [user(text), *filler(6, 10 * at), assistant("Done.")]
    page = notes_on([*messages, *filler(8, 100), user("And?")])
    assert [line.partition("] ")[2] for line in section(page, USER_MESSAGES) if line.startswith("[")] == asked


def test_l7_omitted_user_messages_are_counted() -> None:
    """L7: every omitted user message is counted."""
    rules = [user(f"Rule {at}: " + f"the berth_{at} is never given away at night. " * 3) for at in range(60)]
    talk = [message for rule in rules for message in (rule, assistant("Noted."))]
    page = notes_on([user("Mind the rules."), assistant("Yes."), *talk, *filler(10), user("And now?")], 700)
    first, *lines = section(page, USER_MESSAGES)
    places = [int(line.partition("]")[0].removeprefix("[")) for line in lines if line.startswith("[")]
    assert first == f"(Omitted: {60 - len(set(places))} earlier, from [3] on)"
    assert [line.place for line in parse_page(page).users][1:] == places


RULES = "# AGENTS.md instructions for /srv/tides\n\n<INSTRUCTIONS>\nNever touch berth K7.\n</INSTRUCTIONS>"


def test_general_rules_before_first_request_are_not_the_task() -> None:
    first = compact([user(RULES), user(ASK), *filler(20), user("How far?")], budget=3_000, target=1_500)
    more = [*filler(20, 100), user("And now?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    alone = compact([*first.messages, *more], budget=3_000, target=1_500)
    for result in (first, again, alone):
        page = page_of(list(result.messages))
        assert f"{TASK} [2]" in page and section(page, TASK) == [ASK]
        assert RULES.splitlines()[0] in "\n".join(section(page, USER_MESSAGES))


@pytest.mark.parametrize("first", ["Base directory for this skill: /srv/skills/tides\n\n# Tides", "/mode"])
def test_skill_text_and_slash_command_are_not_the_task(first: str) -> None:
    page = notes_on([user(first), user(ASK), *filler(20), user("How far?")])
    assert f"{TASK} [2]" in page and section(page, TASK) == [ASK]


def test_skill_text_is_not_a_user_message() -> None:
    skill = user("Base directory for this skill: /srv/skills/tides\n\nAlways sound the horn twice.")
    page = notes_on([user(ASK), skill, *filler(20), user("How far?")])
    assert "sound the horn" not in "\n".join(section(page, USER_MESSAGES) + section(page, TASK))


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_l7_omitted_user_messages_are_counted_in_every_round(with_checkpoint: bool) -> None:
    """L7: in every round, each user message is shown or counted."""
    history: Messages = [user("Mind the rules."), assistant("Yes.")]
    previous = None
    for turn in range(4):
        wishes = [
            user(f"Rule {turn}.{at}: the berth_{turn}_{at} is never given away at night. " * 3) for at in range(25)
        ]
        history += [message for wish in wishes for message in (wish, assistant("Noted."))]
        result = compact([*history, user("And now?")], budget=1_600, target=800, previous=previous)
        page = page_of(list(result.messages))
        counted, *lines = section(page, USER_MESSAGES)
        entries = {line.partition("]")[0] for line in lines if line.startswith("[")}
        left = int(counted.removeprefix("(Omitted: ").partition(" ")[0])
        kept = sum(message["role"] == "user" for message in result.messages) - 1  # without the page
        assert left + len(entries) + kept == 25 * (turn + 1) + turn + 1
        history = [*result.messages, assistant("So.")]
        previous = result.checkpoint if with_checkpoint else None


def test_task_in_message_of_several_texts_stays_the_task() -> None:
    parts = [{"type": "text", "text": text} for text in (ASK, "Never push to main.")]
    first = compact(
        [{"role": "user", "content": parts}, *filler(20), user("How far?")],
        budget=3_000,
        target=1_500,
        format="openai-chat",
    )
    more = [*filler(20, 100), user("And now?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    for result in (first, again):
        assert section(page_of(list(result.messages)), TASK) == [ASK]
