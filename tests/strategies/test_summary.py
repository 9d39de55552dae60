"""Summaries by a model, as agents have learned to make them: nothing is lost, nothing bad is committed, no loops.

Behaviours are those of the study of coding agents (docs/requirements.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import CompactionResult, Outcome, StructuredSummary, Summary, check, compact
from holdfast.ledger.files import parse_file_list
from holdfast.ledger.headings import EXCERPTS
from holdfast.messages import framed_message
from holdfast.models import Failure, Limits, ModelCall, Reply, ScriptedModel
from holdfast.strategies import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepRecent,
    KeepUserMessages,
    RecursiveSummary,
    StateSummary,
)
from holdfast.summaries import SUMMARY_PREFIX, AsExchange, AsUser, FreeText, Style
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path
from holdfast.triggers import always
from sized import Json, Messages, assistant, calls, round_of, user

if TYPE_CHECKING:
    from holdfast.types import Strategy

WORDS = "goes on about the harbour and its ships and whatever else comes to mind "
UNCHANGED: Any = {"last_resort": "unchanged", "verify": False}
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "recursive": lambda: RecursiveSummary(4, 1, **UNCHANGED),
    "structured": lambda: StructuredSummary(KeepRecent(600), **UNCHANGED),
    "layer": lambda: StructuredSummary(KeepLast(4), **UNCHANGED),
    "state": lambda: StateSummary(4, **UNCHANGED),
    "pi": lambda: Summary(KeepRecent(600, fresh_only=True), FreeText(), AsUser(), **UNCHANGED),
    "whole": lambda: Summary(KeepNothing(), FreeText(), AsUser(), **UNCHANGED),
    "users": lambda: Summary(KeepUserMessages(400), FreeText(), AsUser(), **UNCHANGED),
    "fraction": lambda: Summary(KeepFraction(0.4), FreeText(), AsExchange(), **UNCHANGED),
}
each_strategy = pytest.mark.parametrize("name", STRATEGIES)


def talk(first: int, turns: int) -> Messages:
    """Turns in which every message starts with a unique name: `u1x`, `a1x`, …"""
    return [
        {"role": role, "content": f"{role[0]}{number}x {WORDS * 5}"}
        for number in range(first, first + turns)
        for role in ("user", "assistant")
    ]


def name_of(message: Json) -> str:
    return str(message["content"]).split()[0]


def in_shape(call: ModelCall, text: str) -> str:
    """A short summary with this text, in the format that the call asks for."""
    if "### Completed Work" in call.prompt:
        return f"### Completed Work\n- None\n\n### Key Technical Decisions\n- {text}\n"
    if "state_delta" in call.prompt:
        return json.dumps({"summary": f"KEY FACTS\n{text}", "state_delta": {}})
    return text


def writes(text: str) -> ScriptedModel:
    return ScriptedModel(lambda call: in_shape(call, text), repeat=True)


def run(messages: Messages, strategy: Strategy, model: Any, **more: Any) -> CompactionResult:
    options: dict[str, Any] = {"budget": 10**6, "trigger": always, "estimator": "chars/4", "limits": Limits(backoff=0)}
    return compact(messages, strategy=strategy, summarizer=model, **options | more)


def shown(result: CompactionResult) -> str:
    return "\n".join(str(message["content"]) for message in result.messages)


@each_strategy
def test_message_kept_in_one_round_is_kept_or_summarized_in_the_next(name: str) -> None:
    """(behaviour 1) Every message is visible or was in a prompt: none is lost between two rounds."""
    strategy, model, history = STRATEGIES[name](), writes("all that was said before"), talk(1, 12)
    result = run(history, strategy, model)
    for start in (13, 19):
        new = talk(start, 6)
        history += new
        result = run(result.messages + new, strategy, model, previous=result.checkpoint)
        assert result.outcome is Outcome.COMPACTED
        text = "".join(call.prompt for call in model.calls) + shown(result)
        assert [name_of(message) for message in history if name_of(message) not in text] == []


@each_strategy
def test_previous_summary_is_passed_once_and_replaced(name: str) -> None:
    """S12, P7, L6, W5: each summary includes the previous one."""
    strategy = STRATEGIES[name]()
    first = run(talk(1, 12), strategy, writes("the first part is settled"))
    model = writes("both parts are settled")
    second = run(first.messages + talk(13, 8), strategy, model, previous=first.checkpoint)
    assert sum(call.prompt.count("the first part is settled") for call in model.calls) == 1
    assert shown(second).count("both parts are settled") == 1
    assert ("the first part is settled" in shown(second)) == ("structured" in name or name == "layer")
    assert second.round == 2


def test_split_turn_without_new_history_keeps_previous_summary() -> None:
    """(behaviour 2) Only the middle of a turn is archived; earlier messages are in the summary."""
    strategy = Summary(KeepRecent(300), FreeText(), AsUser(), verify=False, last_resort="unchanged")
    asked = user(40, "please mend the pier")
    loop = [message for number in range(6) for message in round_of(f"c{number}", 120)]
    first = run([*talk(1, 6), asked, *loop], strategy, writes("six turns about the harbour"))
    assert asked in first.messages
    more = [message for number in range(6, 12) for message in round_of(f"c{number}", 120)]
    model = writes("six turns about the harbour, and now the pier")
    second = run(first.messages + more, strategy, model, previous=first.checkpoint)
    assert second.outcome is Outcome.COMPACTED
    assert "six turns about the harbour" in model.calls[0].prompt
    assert second.messages.count(asked) == 1
    assert "six turns about the harbour, and now the pier" in shown(second)
    assert check(second.messages, "openai-chat") == []


def test_archived_messages_without_content_keep_previous_summary() -> None:
    """(behaviour 2) W4: calls of unlisted tools are left out; with an empty transcript no model is called."""
    strategy = StateSummary(2, verify=False)
    asked = user(40, "please mend the pier")
    loop = [message for number in range(12) for message in round_of(f"c{number}", 120)]
    first = run([*talk(1, 6), asked, *loop[:6]], strategy, writes("six turns about the harbour"))
    model = writes("never asked")
    second = run(first.messages + loop[6:], strategy, model, previous=first.checkpoint)
    assert model.calls == []
    assert "six turns about the harbour" in shown(second)
    assert asked in second.messages


BAD: dict[str, Reply] = {
    "empty": Reply(""),
    "white space": Reply(" \n\t\u00a0 "),
    "thoughts alone": Reply("<think>Let me see what they said, it was a lot.</think>"),
    "thoughts that never end": Reply("<thinking>Let me see what they said"),
    "a call": Reply("I will look.", finish="tool_call"),
    "a call in words": Reply('<tool_call>{"name": "read"}</tool_call>'),
    "cut off": Reply("### Completed Work\n- They talked about the", finish="length"),
    "withheld": Reply("They talked", finish="refused"),
    "a refusal": Reply("I'm sorry, but I can't help with that."),
    "longer than all of it": Reply("word " * 90_000),
}


@each_strategy
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_unusable_answer_is_not_committed(name: str, answer: Reply) -> None:
    """(behaviour 6) Messages and previous summary are unchanged, and the result states the reason."""
    strategy = STRATEGIES[name]()
    first = run(talk(1, 12), strategy, writes("the first part is settled"))
    given = first.messages + talk(13, 8)
    model = ScriptedModel(answer, repeat=True)
    failed = run(given, strategy, model, previous=first.checkpoint)
    assert failed.outcome is Outcome.SUMMARY_FAILED
    assert failed.why.startswith("no usable summary: ")
    assert (failed.messages, failed.archived, failed.summary) == (given, [], None)
    assert failed.checkpoint == first.checkpoint
    assert len(model.calls) == 2, "one retry"
    assert "could not be used" in model.calls[1].prompt


@each_strategy
def test_usable_second_answer_is_accepted(name: str) -> None:
    """(behaviour 6)"""
    model = ScriptedModel([Reply(" "), lambda call: in_shape(call, "they talked")])
    result = run(talk(1, 12), STRATEGIES[name](), model)
    assert (result.outcome, len(model.calls)) == (Outcome.COMPACTED, 2)
    assert "they talked" in shown(result)


def test_summary_that_does_not_shrink_is_discarded() -> None:
    """(behaviour 7)"""
    given = talk(1, 4)
    strategy = Summary(KeepLast(4), FreeText(), AsUser(), **UNCHANGED)
    result = run(given, strategy, ScriptedModel("word " * 1_200))
    assert result.outcome in (Outcome.NO_PROGRESS, Outcome.SUMMARY_FAILED)
    assert (result.messages, result.archived, result.checkpoint) == (given, [], None)


def test_files_are_listed_once_in_a_summary_with_excerpts() -> None:
    session = read_transcript(example_path())
    model = ScriptedModel("### Current State\n- Next step: run the tests", repeat=True)
    result = compact(session.messages, budget=40_000, target=20_000, summarizer=model, format=session.format)
    note = str(result.messages[0]["content"])
    listed = [file.path for file in parse_file_list(line for line in note.splitlines() if "/: " in line)]
    assert EXCERPTS in note and len(listed) > 10
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("size", "outcome"), [(95, Outcome.COMPACTED), (155, Outcome.NO_PROGRESS)])
def test_saving_below_a_tenth_gives_no_progress(size: int, outcome: Outcome) -> None:
    """(behaviour 7) Of 1,000 tokens, 200 are archived; their summary may take at most half of that."""
    given = [user(100), assistant(100), *([user(100), assistant(100)] * 4)]
    strategy = Summary(KeepLast(8), FreeText(), AsUser(prefix=""), **UNCHANGED)
    result = run(given, strategy, ScriptedModel("word" * (size - 15)))
    assert result.outcome is outcome
    assert (result.messages == given) == (outcome is Outcome.NO_PROGRESS)


@each_strategy
def test_unchanged_context_asks_no_model(name: str) -> None:
    """(behaviour 7)"""
    strategy = STRATEGIES[name]()
    first = run(talk(1, 12), strategy, writes("the first part is settled"))
    model = writes("never asked")
    again = run(first.messages, strategy, model, previous=first.checkpoint)
    assert (again.messages, len(model.calls)) == (first.messages, 0)
    assert again.outcome in (Outcome.NOTHING_TO_COMPACT, Outcome.NO_PROGRESS)


# -- a summariser for which it is too much (behaviour 8) ------------------------------------------------------------

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
SEEING = Summary(
    KeepLast(2), FreeText(style=Style(result_limit=4_000, images=4)), AsUser(), verify=False, last_resort="unchanged"
)
OVERFLOW = Failure("overflow", "prompt is too long")


def with_everything() -> Messages:
    """Twenty turns, each with a tool output, and two images in the first."""
    seen = {"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE, PICTURE]}
    turns = [seen, assistant(20)]
    for number in range(20):
        turns += [user(60, f"u{number}x"), *round_of(f"c{number}", 300), assistant(60)]
    return turns


def test_overflow_shrinks_the_input_step_by_step() -> None:
    """(behaviour 8) First without images, then without tool outputs, then without the oldest messages."""
    model = ScriptedModel([OVERFLOW, OVERFLOW, OVERFLOW, OVERFLOW, "a summary of what was left"])
    result = run(with_everything(), SEEING, model)
    assert result.outcome is Outcome.COMPACTED
    assert [len(call.media) for call in model.calls] == [2, 0, 0, 0, 0]
    assert ["x" * 500 in call.prompt for call in model.calls] == [True, True, False, False, False]
    assert ["characters, not shown here" in call.prompt for call in model.calls] == [False, False, True, True, True]
    assert ["u0x" in call.prompt.partition("<conversation")[2] for call in model.calls] == [True] * 3 + [False] * 2
    sizes = [len(call.prompt) for call in model.calls]
    assert sizes == sorted(sizes, reverse=True)
    assert "u18x" in model.calls[-1].prompt, "the newest message is never left out"


def test_overflow_reports_number_of_omitted_messages() -> None:
    """(behaviour 8)"""
    result = run(with_everything(), SEEING, ScriptedModel([OVERFLOW] * 4 + ["a summary of what was left"]))
    (remark,) = [remark for remark in result.remarks if "did not fit into the summarizer's input" in remark]
    assert 1 < int(remark.split()[0]) < 80
    assert result.checkpoint is not None
    assert remark in result.checkpoint.remarks


def test_repeated_overflow_ends_after_six_calls() -> None:
    """(behaviour 8) At most six calls: full input, without images, without tool outputs, then three reductions."""
    given, model = with_everything(), ScriptedModel(OVERFLOW, repeat=True)
    result = run(given, SEEING, model)
    assert (result.outcome, result.messages) == (Outcome.SUMMARY_FAILED, given)
    assert "the prompt is too long for the model: prompt is too long" in result.why
    assert len(model.calls) == 6


def test_media_rejected_by_model_is_left_out() -> None:
    """(behaviour 8)"""
    model = ScriptedModel([Failure("media", "images are not supported"), "a summary without them"])
    result = run(with_everything(), SEEING, model)
    assert (result.outcome, [len(call.media) for call in model.calls]) == (Outcome.COMPACTED, [2, 0])
    assert "x" * 500 in model.calls[1].prompt, "nothing else is left out"


def test_overflow_naming_the_window_is_resolved_in_one_step() -> None:
    """(behaviour 8)"""
    model = ScriptedModel([Failure("overflow", "too long", window=4_000), "a summary of what was left"])
    result = run(with_everything(), SEEING, model)
    assert (result.outcome, len(model.calls)) == (Outcome.COMPACTED, 2)
    call = model.calls[1]
    assert (len(call.prompt) + len(call.system)) / 4 + (call.max_tokens or 0) <= 4_000


@each_strategy
def test_every_writer_retries_with_less_input(name: str) -> None:
    """(behaviour 8) The window is limited in characters and not known beforehand."""

    def window(call: ModelCall) -> Any:
        return OVERFLOW if len(call.prompt) > 12_000 else in_shape(call, "they talked")

    model = ScriptedModel(window, repeat=True)
    result = run(talk(1, 40), STRATEGIES[name](), model)
    assert result.outcome is Outcome.COMPACTED
    assert len(model.calls) <= 6


# -- what only looks like a summary of ours (behaviour 17) ----------------------------------------------------------


@each_strategy
@pytest.mark.parametrize("written", ["by hand", "changed"])
def test_user_text_starting_like_a_summary_is_user_text(name: str, written: str) -> None:
    """(behaviour 17) Only a note with a valid frame is ours."""
    text = f"{SUMMARY_PREFIX}\n\nthe user pasted this {WORDS}"
    if written == "changed":
        text = framed_message(f"{SUMMARY_PREFIX}\n\nthe user pasted that").text.replace("that", "this")
    pasted = {"role": "user", "content": text}
    model = writes("they talked")
    result = run([*talk(1, 3), pasted, *talk(4, 9)], STRATEGIES[name](), model)
    text = "".join(call.prompt for call in model.calls)
    assert "the user pasted this" in text.partition("<conversation")[2] + text.partition("<new-messages")[2]
    assert "the user pasted this" not in text.partition("<conversation")[0].partition("<new-messages")[0]
    assert result.outcome is Outcome.COMPACTED
    newest = run([*talk(1, 12), pasted], STRATEGIES[name](), writes("they talked"))
    assert newest.messages[-1] == pasted or newest.messages[-2] == pasted


@each_strategy
def test_summary_without_checkpoint_is_recognized_by_its_frame(name: str) -> None:
    """(behaviour 17) The summary is passed back as a summary, not as part of the conversation."""
    strategy = STRATEGIES[name]()
    first = run(talk(1, 12), strategy, writes("the first part is settled"))
    model = writes("both parts are settled")
    second = run(first.messages + talk(13, 8), strategy, model)
    text = model.calls[0].prompt
    assert "the first part is settled" in text.partition("<conversation")[0].partition("<new-messages")[0]
    assert text.count("the first part is settled") == 1
    assert second.outcome is Outcome.COMPACTED


# -- halves of characters (behaviour 18) ----------------------------------------------------------------------------

TEXTS = {
    "Chinese": "港口里的船都已经修好了。" * 400,
    "families": "👩‍👩‍👧‍👦🇺🇳👍🏽" * 400,
    "half a pair": "a harbour \ud83d and \ude00 its ships " * 100,
    "a half at the cut": "x" * 1_999 + "\ud83d\ude00" + "y" * 400,
}


@each_strategy
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_breaks_a_summary(name: str, text: str) -> None:
    """(behaviour 18) Prompts are encodable, kept messages are unchanged, and nothing falls back."""
    given: Messages = [
        {"role": "user", "content": f"u1x {text}"},
        calls("c1", arguments=json.dumps({"path": text})),
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "assistant", "content": text},
        *talk(2, 8),
        {"role": "user", "content": f"newest {text}"},
    ]
    model = writes("they talked")
    result = run(given, STRATEGIES[name](), model)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    for call in model.calls:
        call.prompt.encode()
        call.system.encode()
    assert given[-1] in result.messages
    assert len(result.archived) == result.removed > 0
    assert result.checkpoint is not None
    again = run(result.messages + talk(20, 8), STRATEGIES[name](), writes("and more"), previous=result.checkpoint)
    assert (again.outcome, again.why) == (Outcome.COMPACTED, "")


def test_lone_surrogates_in_instructions_and_summary_are_sendable() -> None:
    """(behaviour 18)"""
    model = writes("they talked \ud83d about it")
    first = run(talk(1, 12), STRATEGIES["whole"](), model, instructions="mind the \ud83d smile")
    second = run(first.messages + talk(13, 8), STRATEGIES["whole"](), model, previous=first.checkpoint)
    assert [first.outcome, second.outcome] == [Outcome.COMPACTED] * 2
    for call in model.calls:
        call.prompt.encode()


# -- what a result says of its messages (S2) ------------------------------------------------------------------------


def test_s2_without_commit_all_visible_user_messages_are_kept() -> None:
    """The user message of a summarized turn precedes the live messages and is visible."""
    first = run(talk(1, 12), STRATEGIES["whole"](), writes("the first part is settled"))
    again = run(first.messages, STRATEGIES["whole"](), writes("never asked"), previous=first.checkpoint)
    assert again.outcome is Outcome.NOTHING_TO_COMPACT
    assert [name_of(event.message) for event in again.kept] == ["u12x"]


def test_s2_equal_messages_in_repaired_history_are_distinguished() -> None:
    """A call without a result is repaired; of six equal user messages one stays and five are archived."""
    same = [{"role": "user", "content": f"go on {WORDS * 5}"}, {"role": "assistant", "content": f"yes {WORDS * 5}"}]
    result = run([user(30), calls("c1"), *same * 6], STRATEGIES["whole"](), writes("they talked"))
    assert len(result.messages) == 2
    assert (len(result.kept), result.removed) == (1, 13)


def test_h3_state_is_verified_like_its_summary() -> None:
    """An artifact and a decision that never stood in the log leave text and state, with a remark; open tasks stay."""
    delta = {
        "artifacts": ["dist/ghost.tar", "src/tides.py"],
        "key_decisions": ["Build with `make ghost_target`", "Heights are in centimetres"],
        "open_questions": ["Who paints it?"],
        "risks": ["ghost_table.lock may stay"],
        "tasks": [{"text": "Write ghost_test.py", "status": "open"}],
    }
    model = ScriptedModel(json.dumps({"summary": "KEY FACTS\n- They read src/tides.py", "state_delta": delta}))
    history = [user(40, "please mend src/tides.py, heights in centimetres"), *talk(1, 12)]
    result = run(history, StateSummary(4), model)
    assert result.outcome is Outcome.COMPACTED
    for text in (shown(result), json.dumps(result.checkpoint.carry.state)):
        assert [name for name in ("ghost.tar", "ghost_target", "ghost_table") if name in text] == []
        assert "src/tides.py" in text and "Heights are in centimetres" in text and "Write ghost_test.py" in text
    remark = next(text for text in result.remarks if "do not occur in the history" in text)
    assert all(name in remark for name in ("dist/ghost.tar", "ghost_target", "ghost_table.lock"))
    assert "[a" not in remark.partition(";")[0]
