"""Every preset with every fault of its model: its documented fallback applies, and nothing is lost.

The number of model calls is bounded: each call is attempted at most `attempts` times (3; codex 5, workstream 2); an
invalid answer is requested once more; a prompt that is too long is shortened at most five times; an invalid state
delta of the workstream is repaired once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal

from holdfast import CompactionResult, Outcome, acompact, check, preset
from holdfast.compaction.presets import PRESETS
from holdfast.errors import SummaryFailed
from holdfast.models import Limits
from holdfast.triggers import always
from judge import judge
from providers import Answer, Cut, Overflow, ProviderServer, RateLimited, Request, Say, Stall, Status, StreamError
from real_sessions import WHOLE
from summarizing_model import summarize
from time_limits import GROWING_LIMITS

Json = dict[str, Any]
POLICY = {
    "holdfast": "ledger",
    "spring": "unchanged",
    "pi": "ask",
    "claude_code": "ledger",
    "claude_code_ts": "error",
    "codex": "unchanged",
    "opencode": "ledger",
    "amp": "ledger",
    "layer": "unchanged",
    "workstream": "unchanged",
    "goat": "truncation",
}
ATTEMPTS = dict.fromkeys(POLICY, 3) | {"codex": 5, "workstream": 2}
each_preset = pytest.mark.parametrize("name", PRESETS)
WINDOW = 8_000
SECRET = "sk-very-secret-1234567"


def talk(first: int, turns: int) -> list[Json]:
    """Turns with a tool call in each, about 250 tokens per turn."""
    messages: list[Json] = []
    for number in range(first, first + turns):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read", "arguments": '{"path": "/a/b.py"}'},
        }
        messages += [
            {"role": "user", "content": f"u{number} please look after pier {number} " + "and mind the ships " * 12},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "the pier is made of oak\n" * 16},
            {"role": "assistant", "content": f"a{number} it is done " + "and the ships are well " * 12},
        ]
    return messages


class PresetRunner:
    """Runs presets against the server; caches each preset's first compaction."""

    def __init__(self, server: ProviderServer, portal: BlockingPortal, models: Json) -> None:
        self.server, self.portal, self.models = server, portal, models

    def run(self, name: str, messages: list[Json], script: Any, **more: Any) -> CompactionResult:
        policy = preset(name)
        model = self.models[("openai", "anthropic")[list(PRESETS).index(name) % 2]]
        limits = msgspec.structs.replace(policy.limits, backoff=0.0, timeout=60.0, **more.pop("limits", {}))
        self.server.script = script
        self.server.requests.clear()
        work = partial(
            acompact, messages, preset=policy, window=WINDOW, trigger=always, summarizer=model, limits=limits, **more
        )
        return self.portal.call(work)

    @cache  # noqa: B019 - lives as long as the module's tests
    def first(self, name: str) -> CompactionResult:
        result = self.run(name, talk(1, 40), summarize)
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "")
        return result

    @property
    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture(scope="module")
def runner(server: ProviderServer, portal: BlockingPortal, models: Json) -> PresetRunner:
    return PresetRunner(server, portal, models)


def assert_policy(runner: PresetRunner, name: str, given: list[Json], script: Any, reason: str, **options: Any) -> None:
    """Runs a second round and asserts the preset's documented fallback without a summary; nothing is lost."""
    first, policy = runner.first(name), POLICY[name]
    if policy == "error":
        with pytest.raises(SummaryFailed, match=reason) as raised:
            runner.run(name, given, script, previous=first.checkpoint, **options)
        assert SECRET not in str(raised.value)
        return
    result = runner.run(name, given, script, previous=first.checkpoint, **options)
    assert check(result.messages, "openai-chat") == judge(result.messages, "openai-chat") == []
    assert given[-4] in result.messages, "the newest user message, verbatim"
    assert len(result.kept) + result.removed >= len(given) - len(first.messages)
    if policy in ("unchanged", "ask"):
        assert (result.outcome, result.fallback) == (Outcome.SUMMARY_FAILED, "")
        assert (result.messages, result.archived, result.summary) == (given, [], None)
        assert result.checkpoint == first.checkpoint
        assert reason in result.why
        assert ("Choose: compact again" in result.why) == (policy == "ask")
    else:
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, policy)
        assert any(reason in remark and policy in remark for remark in result.remarks)
        assert result.tokens_after < result.tokens_before
        assert result.checkpoint is not None
        assert result.checkpoint.fallback == policy
    assert SECRET not in f"{result.why} {result.remarks}"


PERMANENT: dict[str, tuple[Answer, str, Callable[[str], int]]] = {
    "500": (Status(500), "no answer from the model", lambda name: ATTEMPTS[name]),
    "529 inside the stream": (StreamError(529), "no answer from the model", lambda name: ATTEMPTS[name]),
    "a cut stream": (Cut(after=2), "no answer from the model", lambda name: ATTEMPTS[name]),
    "a stream without an end": (Cut(after=2, clean=True), "no answer from the model", lambda name: ATTEMPTS[name]),
    "429 for an hour": (RateLimited(retry_after=3_600), "no answer from the model", lambda name: 1),
    "a wrong key": (Status(401, f"Incorrect API key provided: {SECRET}."), "refused the key", lambda name: 1),
    "a request that is refused": (Status(400, "There is no such model."), "rejected the request", lambda name: 1),
    "empty": (Say(""), "blank", lambda name: 2),
    "white space": (Say(" \n \t \n"), "blank", lambda name: 2),
    "thoughts alone": (Say("<think>So what did they say?</think>"), "blank", lambda name: 2),
    "cut off at its limit": (Say("### Completed Work\n- They", finish="length"), "cut off", lambda name: 2),
    "a tool call": (Say("Let me look.", finish="tool_call"), "called a tool", lambda name: 2),
    "a refusal": (Say("I'm sorry, I can't help with that."), "refused", lambda name: 2),
    "withheld": (Say("They talked", finish="refused"), "withheld", lambda name: 2),
    "always too long": (Status(400, "prompt is too long"), "too long for the model", lambda name: 6),
    "always too long, with numbers": (Overflow(window=600, tokens=9_000), "too long for the model", lambda name: 6),
}


PERMANENT_PAIRS = [
    (name, fault)
    for place, fault in enumerate(PERMANENT)
    for turn, name in enumerate(PRESETS, place)
    if WHOLE or turn % 2 == 0
]
"""Every fault with every second preset, in turn; with HOLDFAST_WHOLE set, with every one."""


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "fault"), PERMANENT_PAIRS)
def test_permanent_fault_applies_the_fallback_policy(runner: PresetRunner, name: str, fault: str) -> None:
    """P9, G6, L11, S13, W12: the number of model calls is bounded."""
    answer, reason, bound = PERMANENT[fault]
    given = runner.first(name).messages + talk(41, 25)
    assert_policy(runner, name, given, answer, reason)
    assert 1 <= runner.asked <= bound(name)


PASSING: dict[str, Answer] = {
    "500": Status(500),
    "a gateway's page": Status(502, body="<html>Bad Gateway</html>"),
    "429 with a wait": RateLimited(retry_after=0.01),
    "a cut stream": Cut(after=2),
    "an error inside the stream": StreamError(529, "Overloaded"),
    "an empty answer": Say(""),
    "a tool call": Say("", finish="tool_call"),
    "too long": Status(400, "prompt is too long"),
}


PASSING_PAIRS = [
    (name, fault)
    for place, fault in enumerate(PASSING)
    for turn, name in enumerate(PRESETS, place)
    if WHOLE or turn % 2 == 0
]


@pytest.mark.parametrize(("name", "fault"), PASSING_PAIRS)
def test_passing_fault_is_retried(runner: PresetRunner, name: str, fault: str) -> None:
    """P21, W12: one more call succeeds."""
    met: list[Request] = []

    def script(request: Request) -> Answer:
        met.append(request)
        return PASSING[fault] if len(met) == 1 else summarize(request)

    given = runner.first(name).messages + talk(41, 25)
    result = runner.run(name, given, script, previous=runner.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert (runner.asked, result.round) == (2, 2)
    assert check(result.messages, "openai-chat") == judge(result.messages, "openai-chat") == []


@each_preset
def test_stall_beyond_the_deadline_applies_the_fallback_policy(runner: PresetRunner, name: str) -> None:
    """G6: a model that accepts the request and never answers."""
    given = runner.first(name).messages + talk(41, 25)
    limits = {"attempts": 2, "deadline": 0.2}
    assert_policy(runner, name, given, Stall(), "did not answer in time", limits=limits)
    assert runner.asked <= 2
    for request in runner.server.requests:
        assert request.disconnected.wait(30), "the connection is closed"


@each_preset
def test_stall_in_mid_stream_applies_the_fallback_policy(runner: PresetRunner, name: str) -> None:
    """G6"""
    given = runner.first(name).messages + talk(41, 25)
    for deadline in GROWING_LIMITS:
        limits = {"attempts": 1, "deadline": deadline}
        assert_policy(runner, name, given, Stall(after=3), "did not answer in time", limits=limits)
        if any(request.sent for request in runner.server.requests):
            break
    assert runner.asked == 1


@each_preset
@pytest.mark.parametrize("window", [6_000, 4_000, 2_500])
def test_overflow_with_a_reported_window_shortens_the_input(runner: PresetRunner, name: str, window: int) -> None:
    """(behaviour 8) The error reports the window; the next call fits."""

    def script(request: Request) -> Answer:
        tokens = (len(request.prompt) + len(request.system)) // 4
        return Overflow(window, tokens) if tokens > window else summarize(request)

    given = runner.first(name).messages + talk(41, 40)
    result = runner.run(name, given, script, previous=runner.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert runner.asked <= 3
    if name in ("claude_code", "opencode"):  # P20, P22: archived with its reply, and quoted
        assert given[-4]["content"].strip() in str(result.messages[0]["content"])
    else:
        assert given[-4] in result.messages


@each_preset
@pytest.mark.parametrize("window", [6_000, 4_000, 2_500])
def test_overflow_without_a_reported_window_shortens_the_input(runner: PresetRunner, name: str, window: int) -> None:
    """(behaviour 8)"""

    def script(request: Request) -> Answer:
        tokens = (len(request.prompt) + len(request.system)) // 4
        return Status(400, "prompt is too long") if tokens > window else summarize(request)

    given = runner.first(name).messages + talk(41, 40)
    result = runner.run(name, given, script, previous=runner.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert runner.asked <= 6


@each_preset
def test_previous_summary_survives_a_failed_round(runner: PresetRunner, name: str) -> None:
    """The model fails in the second round; in the third it receives the first summary."""
    first = runner.first(name)
    assert first.summary
    lines = [line for line in first.summary.splitlines() if "u1 please look after pier 1" in line]
    assert lines
    given = first.messages + talk(41, 25)
    if POLICY[name] == "error":
        assert_policy(runner, name, given, Status(500), "no answer from the model")
        messages, checkpoint = given, first.checkpoint
    else:
        second = runner.run(name, given, Status(500), previous=first.checkpoint)
        messages, checkpoint = list(second.messages), second.checkpoint
    third = runner.run(name, messages + talk(66, 25), summarize, previous=checkpoint)
    assert third.outcome is Outcome.COMPACTED
    prompts = "".join(request.prompt for request in runner.server.requests)
    visible = "\n".join(str(message["content"]) for message in third.messages)
    assert "u1 please look after pier 1" in prompts + visible


@each_preset
def test_first_round_failure_applies_the_fallback_policy(runner: PresetRunner, name: str) -> None:
    given = talk(1, 40)
    if POLICY[name] == "error":
        with pytest.raises(SummaryFailed, match="no answer from the model"):
            runner.run(name, given, Status(500))
        return
    result = runner.run(name, given, Status(500))
    if POLICY[name] in ("unchanged", "ask"):
        assert (result.outcome, result.messages, result.checkpoint) == (Outcome.SUMMARY_FAILED, given, None)
    else:
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, POLICY[name])
    assert runner.asked == ATTEMPTS[name]


@each_preset
def test_key_echoed_by_a_server_is_hidden(runner: PresetRunner, name: str) -> None:
    echo = Status(401, f"Incorrect API key provided: {SECRET}.")
    if POLICY[name] == "error":
        with pytest.raises(SummaryFailed) as raised:
            runner.run(name, talk(1, 40), echo)
        assert SECRET not in f"{raised.value!r} {raised.value.why}"
    else:
        result = runner.run(name, talk(1, 40), echo)
        assert SECRET not in f"{result!r} {result.why} {result.remarks} {result.checkpoint}"
    assert runner.asked == 1


MALFORMED = {
    "workstream": ['{"summary": "KEY FACTS', "{not json", '{"state_delta": {}}', "[[1, 2]]"],
    "layer": ["## Pending Work\n- None", '{"current_state": {}, "pending_work": []}'],
    "holdfast": ["## Pending Work\n- [ ] Nothing pending"],
    "amp": ["### Current State\n- Working on: None"],
}
PROSE = ["They talked about the harbour and that is all.", "# Poem\nO harbour!"]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in MALFORMED.items() for text in texts])
def test_malformed_answer_is_requested_once_more(runner: PresetRunner, name: str, text: str) -> None:
    """W5, L6: requested once more, then the fallback policy applies."""
    given = runner.first(name).messages + talk(41, 25)
    assert_policy(runner, name, given, Say(text), "no usable summary")
    assert runner.asked == 2


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in ("layer", "holdfast", "amp") for text in PROSE])
def test_l6_prose_is_requested_once_more_and_then_kept_as_text(runner: PresetRunner, name: str, text: str) -> None:
    """In place of a fallback; all that earlier summaries stated is still there."""
    first = runner.first(name)
    result = runner.run(name, first.messages + talk(41, 25), Say(text), previous=first.checkpoint)
    assert (result.outcome, result.fallback, runner.asked) == (Outcome.COMPACTED, "", 2)
    assert text.splitlines()[-1] in str(result.summary)
    assert any("kept as text" in remark for remark in result.remarks)


@pytest.mark.parametrize("repaired", [True, False])
def test_w5_invalid_state_delta_is_requested_once_more(runner: PresetRunner, repaired: bool) -> None:
    """The summary is kept; the state stays unchanged if the second answer is invalid, too."""
    wrong = '{"summary": "KEY FACTS\\nthe piers are of oak", "state_delta": 7}'
    right = '{"summary": "KEY FACTS\\nthe piers are of oak", "state_delta": {"tasks": ["mend pier 50"]}}'
    first = runner.first("workstream")
    given = first.messages + talk(41, 25)
    result = runner.run("workstream", given, [wrong, right if repaired else wrong], previous=first.checkpoint)
    assert (result.outcome, runner.asked) == (Outcome.COMPACTED, 2)
    assert "the piers are of oak" in str(result.messages)
    assert ("mend pier 50" in str(result.messages)) == repaired
    assert any("of the state delta, this was ignored" in remark for remark in result.remarks) != repaired
    assert result.checkpoint is not None
    assert result.checkpoint.carry.state is not None


def test_limits_match_the_documents() -> None:
    assert {name: preset(name).limits.attempts for name in PRESETS} == ATTEMPTS
    assert preset("workstream").limits == Limits(attempts=2, backoff=3.0, deadline=300.0)
