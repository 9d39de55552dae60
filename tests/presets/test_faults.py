"""Every preset and everything that can go wrong with its model: what its document says is done, and nothing is lost.

How often a model is asked is bounded, and the bound stands here: each call is made at most `attempts` times (3; codex
5, workstream 2); an answer that is none is asked for once more; a prompt that is too long is made shorter at most five
times; what the workstream answers is mended once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal

from holdfast import CompactionResult, Limits, Outcome, always, check
from holdfast.presets import PRESETS
from judge import judge
from presets.honest import summarise
from providers import Answer, Cut, Overflow, ProviderServer, RateLimited, Request, Say, Stall, Status, StreamError

Json = dict[str, Any]
POLICY = {
    "holdfast": "ledger",
    "spring": "unchanged",
    "pi": "ask",
    "claude_code": "ledger",
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
    """Turns with a tool in each, some 250 tokens a turn."""
    said: list[Json] = []
    for number in range(first, first + turns):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read", "arguments": '{"path": "/a/b.py"}'},
        }
        said += [
            {"role": "user", "content": f"u{number} please look after pier {number} " + "and mind the ships " * 12},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "the pier is made of oak\n" * 16},
            {"role": "assistant", "content": f"a{number} it is done " + "and the ships are well " * 12},
        ]
    return said


class Setting:
    """A preset that has compacted once, and what was said since."""

    def __init__(self, server: ProviderServer, portal: BlockingPortal, models: Json) -> None:
        self.server, self.portal, self.models = server, portal, models

    def run(self, name: str, messages: list[Json], script: Any, **more: Any) -> CompactionResult:
        preset = PRESETS[name]
        model = self.models[("openai", "anthropic")[list(PRESETS).index(name) % 2]]
        limits = msgspec.structs.replace(preset.limits, backoff=0.0, timeout=5.0, **more.pop("limits", {}))
        self.server.script = script
        self.server.requests.clear()
        work = partial(preset.acompact, messages, WINDOW, trigger=always, summarizer=model, limits=limits, **more)
        return self.portal.call(work)

    @cache  # noqa: B019 - it lives as long as the module's tests
    def first(self, name: str) -> CompactionResult:
        result = self.run(name, talk(1, 40), summarise)
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "")
        return result

    @property
    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture(scope="module")
def setting(server: ProviderServer, portal: BlockingPortal, models: Json) -> Setting:
    return Setting(server, portal, models)


def policy_holds(setting: Setting, name: str, given: list[Json], result: CompactionResult, says: str) -> None:
    """What the preset's document says is done where there is no summary; and nothing is lost by it."""
    first, policy = setting.first(name), POLICY[name]
    assert check(result.messages, "openai-chat") == judge(result.messages, "openai-chat") == []
    assert given[-4] in result.messages, "the newest of what the user said, word for word"
    assert len(result.kept) + result.removed >= len(given) - len(first.messages)
    if policy in ("unchanged", "ask"):
        assert (result.outcome, result.fallback) == (Outcome.SUMMARY_FAILED, "")
        assert (result.messages, result.archived, result.summary) == (given, [], None)
        assert result.checkpoint == first.checkpoint
        assert says in result.why
        assert ("for you to decide" in result.why) == (policy == "ask")
    else:
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, policy)
        assert any(says in remark and policy in remark for remark in result.remarks)
        assert result.tokens_after < result.tokens_before
        assert result.checkpoint is not None
        assert result.checkpoint.fallback == policy
    assert SECRET not in f"{result.why} {result.remarks}"


FOR_EVER: dict[str, tuple[Answer, str, Callable[[str], int]]] = {
    "500": (Status(500), "transport", lambda name: ATTEMPTS[name]),
    "529 inside the stream": (StreamError(529), "transport", lambda name: ATTEMPTS[name]),
    "a cut stream": (Cut(after=2), "transport", lambda name: ATTEMPTS[name]),
    "a stream without an end": (Cut(after=2, clean=True), "transport", lambda name: ATTEMPTS[name]),
    "429 for an hour": (RateLimited(retry_after=3_600), "transport", lambda name: 1),
    "a wrong key": (Status(401, f"Incorrect API key provided: {SECRET}."), "auth", lambda name: 1),
    "a request that is refused": (Status(400, "There is no such model."), "request", lambda name: 1),
    "empty": (Say(""), "blank", lambda name: 2),
    "white space": (Say(" \n \t \n"), "blank", lambda name: 2),
    "thoughts alone": (Say("<think>So what did they say?</think>"), "blank", lambda name: 2),
    "cut off at its limit": (Say("### Completed Work\n- They", finish="length"), "cut off", lambda name: 2),
    "a tool call": (Say("Let me look.", finish="tool_call"), "called a tool", lambda name: 2),
    "a refusal": (Say("I'm sorry, I can't help with that."), "refused", lambda name: 2),
    "withheld": (Say("They talked", finish="refused"), "withheld", lambda name: 2),
    "too long for ever": (Status(400, "prompt is too long"), "overflow", lambda name: 6),
    "too long for ever, by so much": (Overflow(window=600, tokens=9_000), "overflow", lambda name: 6),
}


@each_preset
@pytest.mark.parametrize("fault", FOR_EVER)
def test_a_fault_that_stays(setting: Setting, name: str, fault: str) -> None:
    """P9, G6, L11, S13, W12: and the model is not asked more often than the bound says."""
    answer, says, bound = FOR_EVER[fault]
    given = setting.first(name).messages + talk(41, 25)
    result = setting.run(name, given, answer, previous=setting.first(name).checkpoint)
    policy_holds(setting, name, given, result, says)
    assert 1 <= setting.asked <= bound(name)


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


@each_preset
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes(setting: Setting, name: str, fault: str) -> None:
    """P21, W12: one call more, and all is well."""
    met: list[Request] = []

    def script(request: Request) -> Answer:
        met.append(request)
        return PASSING[fault] if len(met) == 1 else summarise(request)

    given = setting.first(name).messages + talk(41, 25)
    result = setting.run(name, given, script, previous=setting.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert (setting.asked, result.round) == (2, 2)
    assert check(result.messages, "openai-chat") == judge(result.messages, "openai-chat") == []


@each_preset
def test_a_stall_beyond_the_time_limit(setting: Setting, name: str) -> None:
    """G6: a model that takes the question and never answers."""
    given = setting.first(name).messages + talk(41, 25)
    limits = {"attempts": 2, "deadline": 0.2}
    result = setting.run(name, given, Stall(), previous=setting.first(name).checkpoint, limits=limits)
    policy_holds(setting, name, given, result, "timeout")
    assert setting.asked <= 2
    for request in setting.server.requests:
        assert request.disconnected.wait(5), "nobody goes on listening"


@each_preset
def test_a_stall_in_the_middle_of_the_stream(setting: Setting, name: str) -> None:
    """G6"""
    given = setting.first(name).messages + talk(41, 25)
    limits = {"attempts": 1, "deadline": 0.2}
    result = setting.run(name, given, Stall(after=3), previous=setting.first(name).checkpoint, limits=limits)
    policy_holds(setting, name, given, result, "timeout")
    assert setting.asked == 1


@each_preset
@pytest.mark.parametrize("window", [6_000, 4_000, 2_500])
def test_a_summariser_whose_window_is_too_small_is_given_less_until_it_fits(
    setting: Setting, name: str, window: int
) -> None:
    """(behaviour 8) Its error tells the window; it is met in the next call."""

    def script(request: Request) -> Answer:
        tokens = (len(request.prompt) + len(request.system)) // 4
        return Overflow(window, tokens) if tokens > window else summarise(request)

    given = setting.first(name).messages + talk(41, 40)
    result = setting.run(name, given, script, previous=setting.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert setting.asked <= 3
    assert given[-4] in result.messages


@each_preset
@pytest.mark.parametrize("window", [6_000, 4_000, 2_500])
def test_a_summariser_that_does_not_tell_its_window_is_given_less_until_it_fits(
    setting: Setting, name: str, window: int
) -> None:
    """(behaviour 8)"""

    def script(request: Request) -> Answer:
        tokens = (len(request.prompt) + len(request.system)) // 4
        return Status(400, "prompt is too long") if tokens > window else summarise(request)

    given = setting.first(name).messages + talk(41, 40)
    result = setting.run(name, given, script, previous=setting.first(name).checkpoint)
    assert (result.outcome, result.fallback, result.why) == (Outcome.COMPACTED, "", "")
    assert setting.asked <= 6


@each_preset
def test_after_a_failure_the_summary_before_is_still_known(setting: Setting, name: str) -> None:
    """The model is down in the second round and back in the third, and is told what the first summary said."""
    first = setting.first(name)
    assert first.summary
    said = [line for line in first.summary.splitlines() if "u1 please look after pier 1" in line]
    assert said
    given = first.messages + talk(41, 25)
    second = setting.run(name, given, Status(500), previous=first.checkpoint)
    more = second.messages + talk(66, 25)
    third = setting.run(name, more, summarise, previous=second.checkpoint)
    assert third.outcome is Outcome.COMPACTED
    told = "".join(request.prompt for request in setting.server.requests)
    visible = "\n".join(str(message["content"]) for message in third.messages)
    assert "u1 please look after pier 1" in told + visible


@each_preset
def test_without_a_summary_before_it_is_the_same(setting: Setting, name: str) -> None:
    given = talk(1, 40)
    result = setting.run(name, given, Status(500))
    if POLICY[name] in ("unchanged", "ask"):
        assert (result.outcome, result.messages, result.checkpoint) == (Outcome.SUMMARY_FAILED, given, None)
    else:
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, POLICY[name])
    assert setting.asked == ATTEMPTS[name]


@each_preset
def test_a_key_that_a_server_echoes_is_hidden(setting: Setting, name: str) -> None:
    result = setting.run(name, talk(1, 40), Status(401, f"Incorrect API key provided: {SECRET}."))
    assert SECRET not in f"{result!r} {result.why} {result.remarks} {result.checkpoint}"
    assert setting.asked == 1


SHAPELESS = {
    "workstream": ['{"summary": "KEY FACTS', "{not json", '{"state_delta": {}}', "[[1, 2]]"],
    "layer": ["They talked about the harbour and that is all.", "# Poem\nO harbour!"],
    "holdfast": ["They talked about the harbour and that is all."],
    "amp": ["They talked about the harbour and that is all."],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in SHAPELESS.items() for text in texts])
def test_an_answer_that_is_not_in_the_shape_that_was_asked_for(setting: Setting, name: str, text: str) -> None:
    """W5, L6: it is asked for once more, and then the policy holds."""
    given = setting.first(name).messages + talk(41, 25)
    result = setting.run(name, given, Say(text), previous=setting.first(name).checkpoint)
    policy_holds(setting, name, given, result, "answer")
    assert setting.asked == 2


@pytest.mark.parametrize("mended", [True, False])
def test_w5_changes_to_the_state_that_cannot_be_read_are_asked_for_once_more(setting: Setting, mended: bool) -> None:
    """The summary is good and is kept; only the state stays as it was if the second answer is no better."""
    wrong = '{"summary": "KEY FACTS\\nthe piers are of oak", "state_delta": {"tasks": 7}}'
    right = '{"summary": "KEY FACTS\\nthe piers are of oak", "state_delta": {"tasks": ["mend pier 50"]}}'
    first = setting.first("workstream")
    given = first.messages + talk(41, 25)
    result = setting.run("workstream", given, [wrong, right if mended else wrong], previous=first.checkpoint)
    assert (result.outcome, setting.asked) == (Outcome.COMPACTED, 2)
    assert "the piers are of oak" in str(result.messages)
    assert ("mend pier 50" in str(result.messages)) == mended
    assert any("refused" in remark for remark in result.remarks) != mended
    assert result.checkpoint is not None
    assert result.checkpoint.carry.state is not None


def test_limits_are_the_documents() -> None:
    assert {name: preset.limits.attempts for name, preset in PRESETS.items()} == ATTEMPTS
    assert PRESETS["workstream"].limits == Limits(attempts=2, backoff=3.0, deadline=300.0)
