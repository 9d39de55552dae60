"""Who speaks in the user's name, and what is noted of everybody who speaks (H3, L7)."""

from __future__ import annotations

import pytest
from ledger_story import Json, Messages, noise, notes_on, said, section, used, user

from holdfast import compact
from holdfast.ledger import Ledger, Notebook, must_keep
from holdfast.ledger.headings import CALLS, SAID, TASK, USER
from holdfast.ledger.speakers import by_speaker
from holdfast.messages import decode_all


def ledger_of(messages: Messages, format: str = "openai-chat") -> Ledger:
    decoded, _ = decode_all(messages, format)
    notebook = Notebook()
    notebook.read(decoded, range(1, len(decoded) + 1))
    return notebook.ledger()


def texts(role: str, *parts: str) -> Json:
    return {"role": role, "content": [{"type": "text", "text": part} for part in parts]}


@pytest.mark.parametrize(
    "text",
    [
        "<App> crashes on start. Never touch the schema.",
        "<task>\nMove the tide tables to K7.\n</task>",
        "<document>long</document>\nSummarise the document in German.",
        "<my-component> does not render.",
        "<user-request>Never delete table_99.</user-request>",
        "[URGENT: never delete table_98]",
    ],
)
def test_what_a_person_writes_in_tags_is_the_persons(text: str) -> None:
    assert by_speaker(text) == (text, "")
    assert section(notes_on([user(text), *noise(20), user("And now?")]), TASK) == text.splitlines()


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("<system-reminder>Mind the rules.</system-reminder>", ""),
        ("<command-name>/exit</command-name>\n   <command-args></command-args>", ""),
        ("<environment_context cwd='x'>\n<cwd>/srv</cwd>\n</environment_context>", ""),
        ("[Request interrupted by user]", ""),
        ("<system-reminder>Mind the rules.</system-reminder>\nMend the parser.", "Mend the parser."),
    ],
)
def test_what_a_program_says_in_the_users_name_is_not_the_persons(text: str, own: str) -> None:
    assert by_speaker(text)[0] == own
    assert [line.text for line in ledger_of([user(text)]).users] == ([own] if own else [])


def test_tags_without_end_are_read_in_one_go() -> None:
    assert by_speaker("<system-reminder>" * 100_000)[1] == ""


def test_nothing_is_lost_of_a_message_of_several_texts() -> None:
    first = texts("user", "Here is the log of last night.", "Find out why berth K7 was given away twice.")
    ledger = ledger_of([first, texts("assistant", "We use shard 12.", "Anything else?"), user("No.")], "anthropic")
    assert [line.text for line in ledger.users[:2]] == [
        "Here is the log of last night.",
        "Find out why berth K7 was given away twice.",
    ]
    assert [line.text for line in ledger.closings] == ["We use shard 12.\n\nAnything else?"]
    assert any("berth K7" in fact.text for fact in must_keep(ledger))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_what_the_builder_of_an_agent_says_on_the_way_is_kept(role: str) -> None:
    rule = {"role": role, "content": "From now on never touch berth_K7_production."}
    page = notes_on([user("Go."), *noise(5), rule, *noise(20), user("And now?")])
    assert "[12] (system) From now on never touch berth_K7_production." in section(page, USER)


def test_the_last_conclusion_is_not_lost_with_the_cut_behind_it() -> None:
    talk = [user("Which shard?"), *noise(20), said("We decided on shard_12 for Osterhaven.")]
    first = compact([*talk, user("Good.")], budget=3_000, target=1_500)
    more = [*noise(20, 100), user("And?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    page = str(again.messages[0]["content"])
    assert any("shard_12" in line for line in section(page, SAID))


def test_what_was_called_since_the_user_last_spoke_is_told() -> None:
    """P12: what was done already must not be done again."""
    body = "\n".join(f"line_{at} = compute_{at}({at})" for at in range(2_000))
    messages = [user("Hello."), said("Hi."), user("Transfer 500 EUR to Miller, then write the report.")]
    messages += used("1", "make_transfer", "booked as T-4711\nthank you", to="Miller", amount=500, currency="EUR")
    messages += used("2", "write", "ok, written", path="/srv/report.py", content=body)
    page = notes_on(messages, 2_000)
    assert section(page, CALLS) == ["[5] make_transfer: to=Miller, amount=500, currency=EUR → booked as T-4711"]
    assert "has begun" in page.splitlines()[0]


def test_a_new_wish_begins_anew() -> None:
    messages = [user("Pay."), *used("1", "make_transfer", "booked", amount=500), user("Thanks."), *noise(20)]
    assert section(notes_on([*messages, user("And now?")]), CALLS) == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_what_the_user_says_beside_a_result_is_the_users(format: str) -> None:
    rule = "From now on never touch table_5."
    if format == "anthropic":
        call: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "ls", "input": {}}]}
        result = {"type": "tool_result", "tool_use_id": "1", "content": "fine"}
        answer: Json = {"role": "user", "content": [result, {"type": "text", "text": rule}]}
        first: Json = user("Go.")
    else:
        call = {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]}
        answer = {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": "fine"}}}]}
        answer["parts"].append({"text": rule})
        first = {"role": "user", "parts": [{"text": "Go."}]}
    assert [line.text for line in ledger_of([first, call, answer], format).users] == ["Go.", rule]


def test_what_fills_the_place_of_an_assistant_that_said_nothing_is_not_told() -> None:
    story = [
        user("Mend the sluice."),
        said("The lower sluice is mended."),
        user("/clear"),
        said("No response requested."),
    ]
    told = "\n".join(section(notes_on([*story, *noise(20), user("And now?")]), SAID))
    assert "The lower sluice is mended." in told
    assert "No response requested." not in told


def test_how_much_more_was_called_is_told_in_full() -> None:
    calls = [message for at in range(200) for message in used(f"c{at}", "book_room", f"booked R-{at}", room=at)]
    told = section(notes_on([user("Book them all."), *calls, said("Working on it.")], target=1_000), CALLS)
    untold = int(told[0].removeprefix("(Not told here: ").split()[0])
    assert untold + len(told) - 1 >= 190, "what is still visible is not called again"
