"""What a shortened trail still says in the next round: the user's words in results, and which calls failed (H3)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import CompactionResult, StructuredSummary, compact
from holdfast.models import ScriptedModel

Json = dict[str, Any]
ANSWER = (
    'User has answered your questions: "Which database?"="Keep only staging_eu", "May I drop tables?"="No, never drop'
    " any table\".\nYou can now continue with the user's answers in mind."
)
REJECTION = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the"
    " new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to go on."
)
FAILURE = "Chunk ID: 4f2a\nProcess exited with code 128\nOutput:\n" + "remote: Not Found\n" * 40


def step(number: int, name: str, given: Json, output: str, *, failed: bool = False) -> list[Json]:
    """A call and its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def read(number: int, lines: int = 120) -> list[Json]:
    text = "\n".join(f"row {number} {line} value_{number}_{line} some text here" for line in range(lines))
    return step(number, "Read", {"file_path": f"/srv/part{number}.txt"}, text)


def work(*middle: Json) -> list[Json]:
    """Long work, these messages, and three more steps, whose results fill the room."""
    before = [*step(40, "Bash", {"command": "ls -la"}, "total 0"), *(one for at in range(6) for one in read(at))]
    after = [one for at in (7, 8, 9) for one in read(at)]
    return [{"role": "user", "content": "Clean up staging."}, *before, *middle, *after]


def compacted(messages: list[Json], previous: Any = None, target: int = 4_000, **options: Any) -> CompactionResult:
    return compact(
        messages, budget=target, target=target, previous=previous, estimator="chars/4", format="anthropic", **options
    )


def commands_after_rounds(result: CompactionResult, carried: bool) -> str:
    """The commands that the page lists when two more rounds have archived all of `result`."""
    for at in (100, 200):
        later = [one for number in range(at, at + 60) for one in read(number, 20)]
        result = compacted([*result.messages, *later], result.checkpoint if carried else None, target=2_500)
    page = next(str(message) for message in result.messages if "[Notes on the earlier conversation" in str(message))
    return page.partition("## Commands")[2].partition("##")[0]


@pytest.mark.parametrize("target", [2_500, 4_000, 8_000])
def test_answer_to_a_question_of_a_tool_is_never_cut(target: int) -> None:
    messages = work(*step(50, "AskUserQuestion", {"questions": []}, ANSWER))
    assert "never drop any table" in str(compacted(messages, target=target).messages)


@pytest.mark.parametrize("carried", [True, False])
def test_answer_to_a_question_of_a_tool_stays_known_in_later_rounds(carried: bool) -> None:
    result = compacted(work(*step(50, "AskUserQuestion", {"questions": []}, ANSWER)))
    for at in range(1, 5):
        later = [one for number in range(100 * at, 100 * at + 8) for one in read(number)]
        result = compacted([*result.messages, *later], result.checkpoint if carried else None)
        assert "never drop any table" in str(result.messages)


@pytest.mark.parametrize("carried", [True, False])
def test_rejected_command_is_never_listed_as_run(carried: bool) -> None:
    result = compacted(work(*step(50, "Bash", {"command": "dropdb production"}, REJECTION, failed=True)))
    assert REJECTION in str(result.messages).replace('"', "'").replace("'", "'")
    commands = commands_after_rounds(result, carried)
    assert "ls -la" in commands and "dropdb production" not in commands


def test_user_words_in_results_are_not_cut_after_a_summary() -> None:
    before, after = [one for at in range(60, 100) for one in read(at)], [*read(51), *read(52)]
    messages = [*work(*before), *step(50, "AskUserQuestion", {"questions": []}, ANSWER * 4), *after]
    result = compacted(
        messages, target=8_000, strategy=StructuredSummary(), summarizer=ScriptedModel("## Goal\nClean up.")
    )
    results = [block for message in result.messages for block in message["content"] if isinstance(block, dict)]
    assert ANSWER * 4 in [block.get("content") for block in results]


@pytest.mark.parametrize("carried", [True, False])
def test_exit_code_of_a_cut_result_tells_later_rounds_that_the_command_failed(carried: bool) -> None:
    result = compacted(work(*step(50, "shell", {"command": "git fetch origin"}, FAILURE)))
    shown = str(result.messages[1:])
    assert "[cut: 17]" in shown and shown.count("Process exited with code 128") == 1
    assert "git fetch origin  (failed)" in commands_after_rounds(result, carried)


def test_cut_marks_are_explained_where_every_message_is_still_shown() -> None:
    result = compacted(work())
    assert result.removed == 0 and "[cut: 5]" in str(result.messages)
    assert "every message is shown. Results that begin with a cut mark show selected lines" in str(result.messages[0])
    assert result.round == 0 and result.tokens_after <= 4_000
