"""Contestants keep to the budget and do what their names say."""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from collections.abc import Sequence

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.io.installation import install_command
from holdfast.lab.contestants import (
    LEDGER,
    OURS,
    PEERS,
    SIMPLE,
    Contestant,
    ContestantResult,
    ContestantTask,
    choose_contestants,
    count_message_tokens,
)
from holdfast.lab.contestants.base import fitting_head, fitting_tail, largest_allowed
from holdfast.lab.corpus import Cut, iter_cuts
from holdfast.lab.measures import score_context
from holdfast.lab.needs import find_needed
from holdfast.lab.trial import split_history
from holdfast.messages import Message, user
from holdfast.tokens import estimator_for
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path
from lab_story import long_history, used

CHARS = estimator_for("chars/4")
FIELD = tuple(contestant for contestant in (*SIMPLE, *OURS) if not contestant.needs_summary)
SIMPLE_BY_NAME = {contestant.name: contestant for contestant in SIMPLE}


@pytest.fixture(scope="module")
def history() -> list[Message]:
    return long_history(30)


@pytest.fixture(scope="module")
def harbor() -> Cut:
    return list(iter_cuts(read_transcript(example_path())))[1]


def task(budget: int = 1_000, estimator: str = "chars/4") -> ContestantTask:
    return ContestantTask("openai-chat", budget, estimator_for(estimator))


def text_of(name: str, messages: Sequence[Message], budget: int = 1_000) -> str:
    return SIMPLE_BY_NAME[name].compact(messages, task(budget), None).messages[0].text


@pytest.mark.parametrize("contestant", FIELD, ids=lambda one: one.name)
@pytest.mark.parametrize("estimator", ["chars/4", "chars/3", "o200k_base"])
def test_contestant_keeps_to_budget(contestant: Contestant, estimator: str, history: list[Message]) -> None:
    given = task(2_000, estimator)
    left = contestant.compact(history, given, None)
    assert 0 < count_message_tokens(left.messages, given.estimator) <= 2_000
    assert left.seconds > 0
    assert left.problems == (None if contestant.family == "simple" else 0)


@pytest.mark.parametrize("contestant", FIELD, ids=lambda one: one.name)
def test_contestant_continues_from_its_result(contestant: Contestant, history: list[Message]) -> None:
    left: ContestantResult | None = None
    for piece in split_history(history, 5):
        left = contestant.compact(piece, task(1_500), left)
        assert count_message_tokens(left.messages, CHARS) <= 1_500
        assert not left.problems
    assert left is not None and "value_29_" in str(left.messages)


def test_baseline_keeps_described_text(history: list[Message]) -> None:
    end = history[-1].text
    for name in ("tail window", "head and tail", "mask, keep 3", "cut results"):
        assert text_of(name, history).endswith(end), name
    assert text_of("head and tail", history).startswith(history[0].text)
    assert text_of("random lines", history) == text_of("random lines", history)


def test_masking_keeps_newest_results() -> None:
    messages = [user("go"), *(m for n in range(5) for m in used("look", f"seen_{n}", at=f"place_{n}"))]
    masked = text_of("mask, keep 3", messages)
    assert "seen_1" not in masked and "seen_2" in masked and "place_0" in masked
    assert "seen_0" in text_of("mask, keep 10", messages)


def test_cut_results_keeps_beginning() -> None:
    cut = text_of("cut results", [user("go"), *used("look", "first " + "x" * 400 + " last", at="here")])
    assert "first" in cut and "last" not in cut


def test_results_at_limit_keeps_calls_whole() -> None:
    messages = [user("go"), *used("look", "r" * 390 + "first" + "x" * 100, at="a" * 500)]
    short, long = text_of("results at 150", messages), text_of("results at 400", messages)
    assert short == "go\nlook\n" + "a" * 500 + "\n" + "r" * 150
    assert long.endswith("r" * 390 + "first" + "x" * 5)
    assert "a" * 201 not in text_of("cut results", messages)


def test_simple_contestants_write_tool_names(history: list[Message]) -> None:
    for contestant in SIMPLE:
        if contestant.name != "random lines":
            assert "Read\n/harbor/berth_29.py" in text_of(contestant.name, history), contestant.name


def test_fitting_returns_longest_text() -> None:
    text = "".join(chr(97 + n % 26) for n in range(1_000))
    assert fitting_tail(text, 10, CHARS) == text[-32:]
    assert fitting_head(text, 10, CHARS) == text[:32]
    assert fitting_tail("short", 10, CHARS) == "short"
    assert fitting_tail(text, 1, CHARS) == ""
    assert [
        largest_allowed(9, lambda n: n <= 5),
        largest_allowed(3, lambda n: n <= 5),
        largest_allowed(9, lambda n: False),
    ] == [5, 3, 0]


def test_ledger_invents_no_names(harbor: Cut) -> None:
    needed = find_needed(harbor.before, harbor.after)
    ledger = next(contestant for contestant in FIELD if contestant.name == LEDGER)
    for budget in (2_000, 8_000):
        left = ledger.compact(harbor.before, ContestantTask(harbor.format, budget, CHARS), None)
        assert score_context(left.messages, needed).invented == 0
        assert left.problems == 0


def test_real_summary_is_the_answer_of_the_model(history: list[Message]) -> None:
    """The text has the headings that are asked for; without a summary there is nothing to measure."""
    summary = "### Completed Work\n- Every berth is tidy: value_3_7.\n### Pending Work\n- [ ] Look at berth_29.py."
    contestant = next(one for one in OURS if one.needs_summary)
    given = msgspec.structs.replace(task(1_500), summary=summary)
    left = contestant.compact(history, given, None)
    assert all(words in left.messages[0].text for words in ("Every berth is tidy", "Look at berth_29.py"))
    assert count_message_tokens(left.messages, CHARS) <= 1_500 and left.problems == 0
    with pytest.raises(InvalidInput, match=r"The summary was not used, but the ledger: no summary .*blank"):
        contestant.compact(history, msgspec.structs.replace(given, summary=""), None)
    with pytest.raises(InvalidInput, match="There is no summary"):
        contestant.compact(history, task(1_500), None)


def test_contestants_are_selected_by_name() -> None:
    assert [one.name for one in choose_contestants(("ledger", "random")).contestants] == ["random lines", LEDGER]
    with pytest.raises(InvalidInput, match="No contestant matches 'ledgre'"):
        choose_contestants(("ledgre",))


def test_missing_peers_suggest_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.split(".")[0] in ("langchain", "langchain_core", "litellm"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    for name in ("langchain", "litellm"):
        monkeypatch.delitem(sys.modules, f"holdfast.lab.contestants.{name}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    found = choose_contestants()
    assert found.contestants == (*SIMPLE, *OURS)
    assert [what.partition(" (")[0] for what in found.left_out] == [name for names in PEERS.values() for name in names]
    assert all(install_command("peers") in what for what in found.left_out)
    assert [what.partition(" (")[0] for what in choose_contestants(("tr",)).left_out] == ["LangChain trim"]
    assert choose_contestants(("ledger",)).left_out == ()
    with pytest.raises(
        InvalidInput, match="LiteLLM compress is not available: .* " + re.escape(install_command("peers"))
    ):
        choose_contestants(("ledger", "litellm"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["langchain", "litellm"])
def test_peers_run_released_packages(package: str, history: list[Message]) -> None:
    pytest.importorskip(package)
    module = importlib.import_module(f"holdfast.lab.contestants.{package}")
    assert PEERS[package] == tuple(contestant.name for contestant in getattr(module, package.upper()))
    for contestant in getattr(module, package.upper()):
        first = contestant.compact(history[: len(history) // 2], task(2_000), None)
        left = contestant.compact(history[len(history) // 2 :], task(2_000), first)
        assert 0 < count_message_tokens(left.messages, CHARS) < count_message_tokens(history, CHARS) / 4
        assert left.problems == 0
