"""Text that programs put into user messages, and what is noted of each speaker (H3, L7)."""

from __future__ import annotations

import pytest
from ledger_helpers import Json, Messages, assistant, filler, notes_on, page_of, section, tool_use, user

from holdfast import compact
from holdfast.ledger import HistoryExtractor, Ledger, required_facts
from holdfast.ledger.headings import CALLS, CONCLUSIONS, TASK
from holdfast.messages import decode_all, split_program_text


def ledger_of(messages: Messages, format: str = "openai-chat") -> Ledger:
    decoded, _ = decode_all(messages, format)
    history = HistoryExtractor()
    history.read(decoded, range(1, len(decoded) + 1))
    return history.ledger()


def text_message(role: str, *parts: str) -> Json:
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
def test_text_in_user_tags_belongs_to_the_user(text: str) -> None:
    assert split_program_text(text) == (text, "")
    assert section(notes_on([user(text), *filler(20), user("And now?")]), TASK) == text.splitlines()


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
def test_text_in_program_tags_does_not_belong_to_the_user(text: str, own: str) -> None:
    assert split_program_text(text)[0] == own
    assert [line.text for line in ledger_of([user(text)]).users] == ([own] if own else [])


def test_unclosed_program_tags_take_linear_time() -> None:
    assert split_program_text("<system-reminder>" * 100_000)[1] == ""


def test_message_of_several_texts_is_noted_completely() -> None:
    first = text_message("user", "Here is the log of last night.", "Find out why berth K7 was given away twice.")
    ledger = ledger_of(
        [first, text_message("assistant", "We use shard 12.", "Anything else?"), user("No.")], "anthropic"
    )
    assert [line.text for line in ledger.users[:2]] == [
        "Here is the log of last night.",
        "Find out why berth K7 was given away twice.",
    ]
    assert [line.text for line in ledger.closings] == ["We use shard 12.\n\nAnything else?"]
    assert any("berth K7" in fact.text for fact in required_facts(ledger))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_message_in_mid_conversation_stays_before_the_page(role: str) -> None:
    rule = {"role": role, "content": "From now on never touch berth_K7_production."}
    given = [user("Go."), *filler(5), rule, *filler(20), user("And now?")]
    result = compact(given, budget=3_000, target=1_500)
    assert result.messages[0] == rule
    assert "berth_K7_production" not in str(result.messages[1:]), "the page does not repeat it"


def test_last_conclusion_survives_a_cut_after_it() -> None:
    talk = [user("Which shard?"), *filler(20), assistant("We decided on shard_12 for Osterhaven.")]
    first = compact([*talk, user("Good.")], budget=3_000, target=1_500)
    more = [*filler(20, 100), user("And?")]
    again = compact([*first.messages, *more], budget=3_000, target=1_500, previous=first.checkpoint)
    page = str(again.messages[0]["content"])
    assert any("shard_12" in line for line in section(page, CONCLUSIONS))


def test_h3_calls_since_last_user_message_are_listed() -> None:
    """Completed calls must not be repeated."""
    body = "\n".join(f"line_{at} = compute_{at}({at})" for at in range(2_000))
    messages = [user("Hello."), assistant("Hi."), user("Transfer 500 EUR to Miller, then write the report.")]
    messages += tool_use("1", "make_transfer", "booked as T-4711\nthank you", to="Miller", amount=500, currency="EUR")
    messages += tool_use("2", "write", "ok, written", path="/srv/report.py", content=body)
    page = notes_on(messages, 2_000)
    assert section(page, CALLS) == ["[5] make_transfer: to=Miller, amount=500, currency=EUR → booked as T-4711"]
    assert "has begun" in page.splitlines()[0]


def test_calls_are_cleared_by_a_new_user_message() -> None:
    messages = [user("Pay."), *tool_use("1", "make_transfer", "booked", amount=500), user("Thanks."), *filler(20)]
    assert section(notes_on([*messages, user("And now?")]), CALLS) == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_user_text_next_to_tool_result_belongs_to_the_user(format: str) -> None:
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


def test_placeholder_of_empty_assistant_turn_is_ignored() -> None:
    story = [
        user("Mend the sluice."),
        assistant("The lower sluice is mended."),
        user("/clear"),
        assistant("No response requested."),
    ]
    lines = "\n".join(section(notes_on([*story, *filler(20), user("And now?")]), CONCLUSIONS))
    assert "The lower sluice is mended." in lines
    assert "No response requested." not in lines


def test_omitted_calls_are_counted() -> None:
    calls = [message for at in range(200) for message in tool_use(f"c{at}", "book_room", f"booked R-{at}", room=at)]
    messages = [user("Book them all."), *calls, assistant("Working on it.")]
    done = list(compact(messages, budget=2_000, target=1_000).messages)
    visible = [message for message in done if message.get("tool_calls")]
    lines = section(page_of(done), CALLS)
    omitted = int(lines[0].removeprefix("(Omitted: ").split()[0])
    assert len(visible) + omitted + len(lines) - 1 == 200, "visible calls are not listed again"
    assert 0 < len(visible) < 200
