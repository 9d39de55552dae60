"""Edges without their other end: `check` names both ends, `repair` drops or closes whole units and says so."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from boundary_wire import HI, YES, Claude, Gemini, Json, Messages, Responses

from edge_stories import (
    STORIES,
    TEXT,
    Approval,
    Program,
    Story,
    by_model,
    called_by,
    item,
    reference,
    server_result,
    server_use,
)
from holdfast import check, compact, repair
from holdfast.context import INTERRUPTED_TEXT
from judge import judge

ASK, ANSWER = Responses.user, Responses.reply
ASKED, ANSWERED = Claude.user, Claude.reply


def server_error(name: str, tool: str) -> Json:
    content = {"type": f"{tool}_tool_result_error", "error_code": "unavailable"}
    return {"type": f"{tool}_tool_result", "tool_use_id": name, "content": content}


class Case(NamedTuple):
    profile: str
    messages: Messages
    found: list[tuple[int, str]]
    """Index and rule of each problem."""
    ends: tuple[str, str]
    """Words for both ends in its text."""
    repaired: Messages
    report: list[str]


CLOSED_PROGRAM = item("program_output", id="po_p1", call_id="p1", result=INTERRUPTED_TEXT, status="incomplete")
PROGRAM_MISSING = "dropped function_call 'a': the program 'p1' that it belongs to is missing"
CASES: dict[str, Case] = {
    "a call without its program": Case(
        "openai-responses",
        [ASK, Program.call("a"), Program.output("a"), ANSWER],
        [(1, "orphan-caller")],
        ("function_call 'a'", "program 'p1'"),
        [ASK, ANSWER],
        [PROGRAM_MISSING, "dropped a result of 'a': there is no such call"],
    ),
    "a call of a program that comes later": Case(
        "openai-responses",
        [ASK, Program.call("a"), Program.output("a"), Program.start, Program.end],
        [(1, "orphan-caller")],
        ("function_call 'a'", "program 'p1'"),
        [ASK, Program.start, Program.end],
        [PROGRAM_MISSING, "dropped a result of 'a': there is no such call"],
    ),
    "an output without its program": Case(
        "openai-responses",
        [ASK, Program.end, ANSWER],
        [(1, "orphan-result")],
        ("program_output 'p1'", "program 'p1'"),
        [ASK, ANSWER],
        ["dropped program_output 'p1': the program 'p1' that it belongs to is missing"],
    ),
    "a whole program without its start, and the reasoning that led to it": Case(
        "openai-responses",
        [ASK, Program.thought, Program.call("a"), Program.output("a"), Program.end, ANSWER],
        [(2, "orphan-caller"), (4, "orphan-result")],
        ("function_call 'a'", "program 'p1'"),
        [ASK, ANSWER],
        [
            PROGRAM_MISSING,
            "dropped program_output 'p1': the program 'p1' that it belongs to is missing",
            "dropped a result of 'a': there is no such call",
        ],
    ),
    "a program that the user left unfinished": Case(
        "openai-responses",
        [ASK, Program.start, Program.call("a"), Program.output("a"), ASK, ANSWER],
        [(1, "unfinished")],
        ("program 'p1'", "message 4"),
        [ASK, Program.start, Program.call("a"), Program.output("a"), CLOSED_PROGRAM, ASK, ANSWER],
        ["closed program 'p1' with an error: it has no result"],
    ),
    "a program and its call, both left unfinished": Case(
        "openai-responses",
        [ASK, Program.start, Program.call("a"), ASK],
        [(1, "unfinished"), (2, "unanswered-call")],
        ("program 'p1'", "call 'a' has no result"),
        [
            ASK,
            Program.start,
            Program.call("a"),
            Responses.results("a", f"[tool error] {INTERRUPTED_TEXT}"),
            CLOSED_PROGRAM,
            ASK,
        ],
        ["closed call 'a' with an error: it has no result", "closed program 'p1' with an error: it has no result"],
    ),
    "an approval without its request": Case(
        "openai-responses",
        [ASK, Approval.response, ANSWER],
        [(1, "orphan-result")],
        ("mcp_approval_response", "approval request 'mcpr_1'"),
        [ASK, ANSWER],
        ["dropped mcp_approval_response: the approval request 'mcpr_1' that it belongs to is missing"],
    ),
    "an approved call without its request": Case(
        "openai-responses",
        [ASK, Approval.call, ANSWER],
        [(1, "orphan-caller")],
        ("mcp_call 'mcp_1'", "approval request 'mcpr_1'"),
        [ASK, ANSWER],
        ["dropped mcp_call 'mcp_1': the approval request 'mcpr_1' that it belongs to is missing"],
    ),
    "a reference to a call without its output": Case(
        "openai-responses",
        [ASK, reference("fc_1"), ASK, ANSWER],
        [(1, "unanswered-reference")],
        ("item_reference 'fc_1'", "output"),
        [ASK, ASK, ANSWER],
        ["message 1: item_reference 'fc_1' stands for a call, whose output is missing: it was dropped"],
    ),
    "an output for a reference to reasoning": Case(
        "openai-responses",
        [ASK, reference("rs_1"), Responses.results("a"), ANSWER],
        [(2, "orphan-result")],
        ("result for 'a'", "no such call"),
        [ASK, reference("rs_1"), ANSWER],
        ["dropped a result of 'a': there is no such call"],
    ),
    "a second output for one reference": Case(
        "openai-responses",
        [ASK, reference("fc_1"), Responses.results("a", "A"), Responses.results("b"), ANSWER],
        [(3, "orphan-result")],
        ("result for 'b'", "no such call"),
        [ASK, reference("fc_1"), Responses.results("a", "A"), ANSWER],
        ["dropped a result of 'b': there is no such call"],
    ),
    "a call without the code that made it": Case(
        "anthropic",
        [ASKED, by_model(TEXT, called_by("a", "s")), Claude.results("a"), ANSWERED],
        [(1, "orphan-caller")],
        ("tool_use 'a'", "server tool 's'"),
        [ASKED, by_model(TEXT), ANSWERED],
        [
            "dropped tool_use 'a': the server tool 's' that it belongs to is missing",
            "dropped a result of 'a': there is no such call",
        ],
    ),
    "a result without the code": Case(
        "anthropic",
        [ASKED, by_model(server_result("s"), TEXT), ASKED],
        [(1, "orphan-result")],
        ("code_execution_tool_result", "server tool 's'"),
        [ASKED, by_model(TEXT), ASKED],
        ["dropped code_execution_tool_result: the server tool 's' that it belongs to is missing"],
    ),
    "a search by code that is missing": Case(
        "anthropic",
        [
            ASKED,
            by_model(server_use("w", "web_search", caller={"type": "code_execution_20260120", "tool_id": "s"})),
            by_model(server_result("w", "web_search"), TEXT),
        ],
        [(1, "orphan-caller"), (2, "orphan-result")],
        ("server_tool_use 'w'", "server tool 's'"),
        [ASKED, by_model(TEXT)],
        [
            "dropped server_tool_use 'w': the server tool 's' that it belongs to is missing",
            "dropped web_search_tool_result: the server tool 'w' that it belongs to is missing",
        ],
    ),
    "code that the user left unfinished": Case(
        "anthropic",
        [ASKED, by_model(server_use("s"), called_by("a", "s")), Claude.results("a"), ASKED, ANSWERED],
        [(1, "unfinished")],
        ("server_tool_use 's'", "message 3"),
        [
            ASKED,
            by_model(server_use("s"), called_by("a", "s")),
            Claude.results("a"),
            by_model(server_error("s", "code_execution")),
            ASKED,
            ANSWERED,
        ],
        ["closed server_tool_use 's' with an error: it has no result"],
    ),
    "a search for tools that the user left unfinished": Case(
        "anthropic",
        [ASKED, by_model(server_use("t", "tool_search_tool_bm25")), ASKED],
        [(1, "unfinished")],
        ("server_tool_use 't'", "message 2"),
        [
            ASKED,
            by_model(server_use("t", "tool_search_tool_bm25")),
            by_model(server_error("t", "tool_search")),
            ASKED,
        ],
        ["closed server_tool_use 't' with an error: it has no result"],
    ),
    "a tool of an MCP server that the user left unfinished": Case(
        "anthropic",
        [ASKED, by_model({"type": "mcp_tool_use", "id": "m", "name": "read", "server_name": "f", "input": {}}), ASKED],
        [(1, "unfinished")],
        ("mcp_tool_use 'm'", "message 2"),
        [
            ASKED,
            by_model({"type": "mcp_tool_use", "id": "m", "name": "read", "server_name": "f", "input": {}}),
            by_model(
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "m",
                    "is_error": True,
                    "content": [{"type": "text", "text": INTERRUPTED_TEXT}],
                }
            ),
            ASKED,
        ],
        ["closed mcp_tool_use 'm' with an error: it has no result"],
    ),
    "the result of a tool that Gemini runs, without its call": Case(
        "gemini",
        [HI, Gemini.by_model({"toolResponse": {"id": "t", "response": {}}}, Gemini.text), HI, YES],
        [(1, "orphan-result")],
        ("toolResponse 't'", "tool call 't'"),
        [HI, Gemini.by_model(Gemini.text), HI, YES],
        ["dropped toolResponse 't': the tool call 't' that it belongs to is missing"],
    ),
}
UNKNOWN_TO_JUDGE = [case.ends for name, case in CASES.items() if "reference" in name or case.profile == "gemini"]
"""Gemini does not document it, and of a reference the judge cannot know what it stands for."""
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@cases
def test_check_names_both_ends_of_dangling_edge(case: Case) -> None:
    problems = check(case.messages, case.profile)
    assert [(problem.index, problem.rule) for problem in problems] == case.found
    assert all(end in "; ".join(map(str, problems)) for end in case.ends)
    assert judge(case.messages, case.profile) != [] or case.ends in UNKNOWN_TO_JUDGE


@cases
def test_repair_drops_or_closes_whole_units_and_says_so(case: Case) -> None:
    report: list[str] = []
    repaired = repair(case.messages, case.profile, report=report)
    assert repaired == case.repaired
    assert report == case.report
    assert check(repaired, case.profile) == judge(repaired, case.profile) == []


@cases
def test_result_of_compaction_says_what_was_repaired(case: Case) -> None:
    result = compact(case.messages, budget=100_000, format=case.profile)
    assert result.messages == case.repaired
    assert any(case.report[0] in remark for remark in result.remarks)


stories = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@stories
def test_repair_of_valid_story_changes_and_reports_nothing(story: Story) -> None:
    report: list[str] = []
    assert repair(story.messages, story.profile, report=report) == story.messages
    assert report == []


@stories
def test_conversation_in_progress_is_valid_at_every_step(story: Story) -> None:
    """Reasoning alone, and a reference to it, is no step: its item follows in the same reply."""
    for end in range(1, len(story.messages)):
        if story.messages[end - 1].get("type") != "reasoning":
            assert check(story.messages[:end], story.profile) == []


@stories
def test_check_reports_unit_without_its_first_message(story: Story) -> None:
    for start, end in pairwise([*story.starts, len(story.messages)]):
        without_first = story.messages[:start] + story.messages[start + 1 :]
        if end - start > 1 and story.messages[start].get("type") not in ("reasoning", "item_reference"):
            assert check(without_first, story.profile) != []
            assert check(repair(without_first, story.profile), story.profile) == []


@pytest.mark.parametrize(
    ("profile", "waiting"),
    [
        ("openai-responses", [ASK, Program.start, Program.call("a"), Program.output("a")]),
        ("openai-responses", [ASK, Approval.request, Approval.response]),
        ("openai-responses", [ASK, reference("fc_1"), Responses.results("a")]),
        ("anthropic", [ASKED, by_model(server_use("s"), called_by("a", "s")), Claude.results("a")]),
        ("anthropic", [ASKED, by_model(server_use("w", "web_search"))]),
    ],
)
def test_request_that_the_provider_goes_on_with_is_valid(profile: str, waiting: Messages) -> None:
    assert check(waiting, profile, ready=True) == []


def test_reference_to_call_without_output_is_no_request() -> None:
    messages = [ASK, reference("fc_1")]
    assert check(messages, "openai-responses") == []
    (problem,) = check(messages, "openai-responses", ready=True)
    assert "item_reference 'fc_1' stands for a call, whose output is missing" in problem.text


def test_reference_behind_another_may_be_its_output() -> None:
    messages = [ASK, reference("fc_1"), reference("fc_2"), ASK]
    assert check(messages, "openai-responses", ready=True) == []
    assert repair(messages, "openai-responses") == messages
