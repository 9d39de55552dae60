"""Each tolerance, on what a real client sends: the same message in two requests, and an edit that it does not hide."""

from __future__ import annotations

from typing import Any

import pytest

from client_lists import RULES, aider_requests
from holdfast.follow import Follower, GivenList, content_digest, count_leading_system
from holdfast.follow.digest import (
    CACHE_MARKS,
    CALL_ARGUMENTS,
    CALL_SIGNATURES,
    GENERATED_IDS,
    IN_FIELDS,
    LONE_TEXT_BLOCK,
    NULL_FIELDS,
    REPLY_FIELDS,
    Tolerance,
    in_blocks,
)
from holdfast.messages import Json, decode_all, encode_all

EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
CALL: Json = {"functionCall": {"name": "read", "args": {"berth": 4}}}
COMPACTED: Json = {"type": "compaction", "content": "so far", "encrypted_content": "EuYBCkQY"}


def called(answered: list[Json], arguments: str = "{}") -> Json:
    """The last call of a legacy list without ids, as it is sent to a provider that requires them."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": arguments}}
    return encode_all(decode_all([*answered, call], "openai-chat")[0], "anthropic")[-1]


CASES: dict[str, tuple[Tolerance, Json, Json, Json]] = {
    "Claude Code marks its newest message": (
        CACHE_MARKS,
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "free", **EPHEMERAL}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "free"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "taken"}]},
    ),
    "gemini-cli sends a dummy signature, then none": (
        CALL_SIGNATURES,
        {"role": "model", "parts": [CALL | {"thoughtSignature": "skip_thought_signature_validator"}]},
        {"role": "model", "parts": [CALL]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"berth": 5}}}]},
    ),
    "a list without ids is sent to a provider that requires them": (
        GENERATED_IDS,
        called([{"role": "user", "content": "Which berth?"}]),
        called([{"role": "user", "content": "Which"}, {"role": "user", "content": "berth?"}]),
        called([{"role": "user", "content": "Which berth?"}], '{"berth": 5}'),
    ),
    "LangChain adds null fields to a block that it sends back": (
        NULL_FIELDS,
        {"role": "assistant", "content": [COMPACTED]},
        {"role": "assistant", "content": [COMPACTED | {"signature": None, "tool_changes": None}]},
        {"role": "assistant", "content": [COMPACTED | {"signature": "EuYB"}]},
    ),
    "the openai SDK dumps a reply with all its fields": (
        NULL_FIELDS,
        {"role": "assistant", "content": "Aye.", "refusal": None, "audio": None, "tool_calls": None},
        {"role": "assistant", "content": "Aye."},
        {"role": "assistant", "content": "Aye.", "refusal": "No."},
    ),
    "Claude Code sends a text in a list, and later alone": (
        LONE_TEXT_BLOCK,
        {"role": "user", "content": [{"type": "text", "text": "Read the log of berth 4."}]},
        {"role": "user", "content": "Read the log of berth 4."},
        {"role": "user", "content": "Read the log of berth 5."},
    ),
    "Copilot writes the arguments of its calls anew when it resumes": (
        CALL_ARGUMENTS,
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"a": 1, "b": 2}'}}],
        },
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"b":2,"a":1}'}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"a":1}'}}]},
    ),
    "and in items of Responses": (
        CALL_ARGUMENTS,
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"berth": 4}'},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"berth":4}'},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"berth":5}'},
    ),
    "a program appends a whole reply of Anthropic": (
        REPLY_FIELDS,
        {
            "id": "msg_1",
            "role": "assistant",
            "content": "Aye.",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 9},
        },
        {"role": "assistant", "content": "Aye."},
        {"role": "assistant", "content": "No."},
    ),
    "Claude Code does both": (
        LONE_TEXT_BLOCK,
        {"role": "user", "content": [{"type": "text", "text": "Read the log of berth 4.", **EPHEMERAL}]},
        {"role": "user", "content": "Read the log of berth 4."},
        {"role": "user", "content": [{"type": "text", "text": "Read it.", "citations": []}]},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_message_that_its_client_changes_keeps_its_digest(case: tuple[Tolerance, Json, Json, Json]) -> None:
    _, first, later, edited = case
    assert content_digest(first) == content_digest(later) != content_digest(edited)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tolerance_is_named_for_what_it_tolerates(case: tuple[Tolerance, Json, Json, Json]) -> None:
    """Without the named tolerance the two forms differ."""
    tolerance, *forms, _ = case
    tolerances = (*IN_FIELDS, LONE_TEXT_BLOCK, REPLY_FIELDS)

    def without(named: Tolerance | None, message: Json) -> Json:
        for one in tolerances:
            if one is not named:
                message = in_blocks(message, one) if one in IN_FIELDS else one(message)
        return message

    first, later = forms
    assert without(None, first) == without(None, later)
    assert without(tolerance, first) != without(tolerance, later)


def test_null_in_the_arguments_of_a_call_is_an_edit() -> None:
    calls = [{"type": "tool_use", "id": "t1", "name": "read", "input": given} for given in ({}, {"berth": None})]
    assert len({content_digest({"role": "assistant", "content": [call]}) for call in calls}) == 2


# -- LEADING_SYSTEM --------------------------------------------------------------------------------------------------


def test_leading_system_messages_are_counted_and_later_ones_are_not() -> None:
    """qwen-code renews its system prompt with the date and the open files."""
    lead: list[Json] = [
        {"role": "system", "content": "Today is Tuesday."},
        {"role": "developer", "content": "Be brief."},
    ]
    spoken: list[Json] = [{"role": "user", "content": "Hi."}, {"role": "system", "content": "Plan mode."}]
    assert count_leading_system([*lead, *spoken]) == 2
    assert count_leading_system(spoken) == 0
    assert count_leading_system(lead) == 2


def test_leading_system_message_of_a_framework_is_counted() -> None:
    langchain = pytest.importorskip("langchain_core.messages")
    assert count_leading_system([langchain.SystemMessage("Be brief."), langchain.HumanMessage("Hi.")]) == 1


# -- MOVED_REMINDER --------------------------------------------------------------------------------------------------


def follow(requests: list[list[Json]]) -> list[int]:
    """Follows each request; returns how many messages of the log each one does not continue."""
    log, left = Follower(), []
    for request in requests:
        given = GivenList(request[count_leading_system(request) :])
        match = log.match(given)
        left.append(len(log.ids) - match.logged)
        log.ids += log.new_ids(given, match.known)
    return left


ASKED = [f"Rename tide_{number} to ebb_{number}.\n\nAnd its tests." for number in range(16)]


@pytest.mark.parametrize("reminder", ["user", "sys"])
@pytest.mark.parametrize("examples", [[], None], ids=["no examples", "examples"])
def test_reminder_of_aider_moves_with_the_newest_message(reminder: Any, examples: Any) -> None:
    few = {} if examples is None else {"examples": examples}
    assert follow(list(aider_requests(ASKED, reminder, **few))) == [0] * 16


def test_reminder_that_is_a_block_of_its_own_moves() -> None:
    requests, done = list[list[Json]](), list[Json]()
    for text in ("Read berth 4.", "And 5.", "And 6."):
        block = {"type": "text", "text": text}
        hint = {"type": "text", "text": "<system-reminder>\nThe todo list is empty.\n</system-reminder>"}
        requests.append([*done, {"role": "user", "content": [block, hint]}])
        done += [{"role": "user", "content": [block]}, {"role": "assistant", "content": "Aye."}]
    assert follow(requests) == [0, 0, 0]


def test_reminder_moves_while_tools_are_called() -> None:
    """The newest user message keeps its reminder through its tool loop."""
    loop: list[Json] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "r"}, "type": "function"}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "free"},
    ]
    first, second = {"role": "user", "content": "One."}, {"role": "user", "content": "Two.\n\nBe brief."}
    reminded = {"role": "user", "content": "One.\n\nBe brief."}
    assert follow([[reminded], [reminded, *loop], [first, *loop, second], [first, *loop, second, *loop]]) == [0] * 4


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ([f"Mend the pier.\n\n{RULES}"], ["Mend the pier."]),
        ([f"Mend the pier.\n\n{RULES}"], ["Mend the pier.", "And the quay."]),
        ([f"Mend the pier.\n\n{RULES}"], ["Mend the quay.", f"And paint.\n\n{RULES}"]),
        (["Mend the pier. Paint it."], ["Mend the pier.", "Why? Paint it."]),
    ],
    ids=["newest lost it", "nobody has it", "edited", "part of a line"],
)
def test_message_without_its_end_is_an_edit_unless_the_end_moved(first: list[str], later: list[str]) -> None:
    requests = [[{"role": "user", "content": text} for text in texts] for texts in (first, later)]
    assert follow(requests) == [0, 1]
