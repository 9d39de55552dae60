"""The user's own words among what clients write in the user's name, form by form (L7)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from client_lists import EXAMPLES, RULES, aider_requests
from holdfast import MemoryStore, SessionService, compact
from holdfast.messages import (
    CLIENT_FORMS,
    ClientForm,
    Message,
    Text,
    decode_all,
    examples_end,
    first_request,
    is_request,
    own_words,
    split_program_text,
)
from holdfast.sessions.history import first_user_line

ASK = "Rename the tide table. Keep berth K7 closed, and tell me what you changed."
DONE = Message("assistant", (Text("Done."),))


def typed(*texts: str) -> Message:
    return Message("user", tuple(map(Text, texts)))


@pytest.mark.parametrize("form", CLIENT_FORMS, ids=lambda form: f"{form.client}: {form.what}")
def test_l7_form_of_a_client_is_not_the_users(form: ClientForm) -> None:
    own, program = split_program_text(form.example)
    if form.where == "rules":
        assert own == form.example and not is_request(own), "the user's rules, and no request"
    else:
        assert own == form.own and program
    if not form.own:
        opening = [typed(form.example), DONE] if form.where == "example" else [typed(form.example)]
        assert first_request([*opening, typed(ASK), DONE]) == ASK


@pytest.mark.parametrize(
    "text", [ASK, f"<task>{ASK}</task>", f"<App> fails. {ASK}", "[URGENT] mend it", "# Plan\nmend it"]
)
def test_l7_other_text_is_the_users(text: str) -> None:
    assert split_program_text(text) == (text, "") and own_words(typed(text)) == text


def test_l7_few_shot_examples_of_aider_are_not_the_task() -> None:
    for messages in aider_requests([ASK, "And the berths?"]):
        decoded = decode_all(messages, "openai-chat")[0]
        assert examples_end(decoded) == 1 + len(EXAMPLES)
        assert first_request(decoded) == ASK, "whole, without the rules of its edit format"


def test_l7_task_of_aider_keeps_its_last_clause_in_notes() -> None:
    (*_, messages) = aider_requests([ASK, *(f"Go on with part {n}. {'The tide is high. ' * 60}" for n in range(12))])
    messages[len(EXAMPLES) + 1]["content"] += f"\n\n{RULES}"
    page = str(compact(messages, budget=2_000, target=1_200).messages)
    assert "## Task [6]" in page and ASK in page
    assert "Change the greeting" not in page and "new code base" not in page


def test_l7_text_of_a_command_is_not_the_users_but_its_arguments_are() -> None:
    call = "<command-message>plan</command-message>\n<command-name>/plan</command-name>"
    call += "\n<command-args>the quay</command-args>"
    expansion = "# Create a plan for a new feature\nNever start without one."
    assert own_words(typed(call, expansion)) == "/plan the quay"
    assert first_request([typed(call), typed(expansion), DONE, typed(ASK)]) == "/plan the quay"
    bare = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    assert first_request([typed(bare), typed(expansion), DONE, typed(ASK), DONE]) == ASK


def test_l7_session_is_listed_by_the_users_first_request() -> None:
    async def work() -> None:
        async with SessionService(MemoryStore()) as sessions:
            await sessions.create(id="s", format="openai-chat")
            rules = {"role": "user", "content": "# AGENTS.md instructions for /srv\nNever push."}
            where = {"role": "user", "content": "<environment_context>\n<cwd>/srv</cwd>\n</environment_context>"}
            await sessions.append("s", [rules, where, {"role": "user", "content": ASK}])
            assert await first_user_line(sessions.store, "s") == ASK

    anyio.run(work)


def test_l7_documentation_lists_every_form() -> None:
    text = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text("utf-8")
    for form in CLIENT_FORMS:
        assert f"| {form.client} | {form.what} | {form.where} | `{form.example.splitlines()[0][:60]}` |" in text
