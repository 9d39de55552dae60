"""Everyone who takes part keeps to the budget, and does what it is called for."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Sequence

import pytest

from holdfast.errors import InvalidInput
from holdfast.examples import example_path
from holdfast.lab.contestants import LEDGER, OURS, PEERS, SIMPLE, Compacted, Contestant, Job, field, tokens_of
from holdfast.lab.contestants.fitting import end_of, most, start_of
from holdfast.lab.cuts import Cut, cuts
from holdfast.lab.measures import measure
from holdfast.lab.needs import needs
from holdfast.lab.rolling import chunks
from holdfast.messages import Message, user
from holdfast.tokens import estimator_for
from holdfast.transcripts import read_transcript
from lab_story import long_history, used

CHARS = estimator_for("chars/4")
FIELD = (*SIMPLE, *OURS)
SIMPLE_BY_NAME = {contestant.name: contestant for contestant in SIMPLE}


@pytest.fixture(scope="module")
def history() -> list[Message]:
    return long_history(30)


@pytest.fixture(scope="module")
def harbor() -> Cut:
    return list(cuts(read_transcript(example_path())))[1]


def job(budget: int = 1_000, estimator: str = "chars/4") -> Job:
    return Job("openai-chat", budget, estimator_for(estimator))


def text_of(name: str, messages: Sequence[Message], budget: int = 1_000) -> str:
    return SIMPLE_BY_NAME[name].compact(messages, job(budget), None).messages[0].text


@pytest.mark.parametrize("contestant", FIELD, ids=lambda one: one.name)
@pytest.mark.parametrize("estimator", ["chars/4", "chars/3", "o200k_base"])
def test_everyone_keeps_to_the_budget_whatever_counts(
    contestant: Contestant, estimator: str, history: list[Message]
) -> None:
    given = job(2_000, estimator)
    left = contestant.compact(history, given, None)
    assert 0 < tokens_of(left.messages, given.estimator) <= 2_000
    assert left.seconds > 0
    assert left.problems == (None if contestant.family == "simple" else 0)


@pytest.mark.parametrize("contestant", FIELD, ids=lambda one: one.name)
def test_everyone_can_go_on_from_what_it_left(contestant: Contestant, history: list[Message]) -> None:
    left: Compacted | None = None
    for piece in chunks(history, 5):
        left = contestant.compact(piece, job(1_500), left)
        assert tokens_of(left.messages, CHARS) <= 1_500
        assert not left.problems
    assert left is not None and "value_29_" in str(left.messages)


def test_the_simple_rules_keep_what_they_say(history: list[Message]) -> None:
    end = history[-1].text
    for name in ("tail window", "head and tail", "mask, keep 3", "cut results"):
        assert text_of(name, history).endswith(end), name
    assert text_of("head and tail", history).startswith(history[0].text)
    assert text_of("random lines", history) == text_of("random lines", history)


def test_masking_leaves_old_results_out_and_keeps_new_ones() -> None:
    messages = [user("go"), *(m for n in range(5) for m in used("look", f"seen_{n}", at=f"place_{n}"))]
    masked = text_of("mask, keep 3", messages)
    assert "seen_1" not in masked and "seen_2" in masked and "place_0" in masked
    assert "seen_0" in text_of("mask, keep 10", messages)


def test_cutting_leaves_the_beginning_of_each_result() -> None:
    cut = text_of("cut results", [user("go"), *used("look", "first " + "x" * 400 + " last", at="here")])
    assert "first" in cut and "last" not in cut


def test_as_much_text_as_fits() -> None:
    text = "".join(chr(97 + n % 26) for n in range(1_000))
    assert end_of(text, 10, CHARS) == text[-32:]
    assert start_of(text, 10, CHARS) == text[:32]
    assert end_of("short", 10, CHARS) == "short"
    assert end_of(text, 1, CHARS) == ""
    assert [most(9, lambda n: n <= 5), most(3, lambda n: n <= 5), most(9, lambda n: False)] == [5, 3, 0]


def test_the_ledger_invents_no_names(harbor: Cut) -> None:
    needed = needs(harbor.before, harbor.after)
    ledger = next(contestant for contestant in FIELD if contestant.name == LEDGER)
    for budget in (2_000, 8_000):
        left = ledger.compact(harbor.before, Job(harbor.format, budget, CHARS), None)
        assert measure(left.messages, needed).invented == 0
        assert left.problems == 0


def test_contestants_are_chosen_by_words_of_their_names() -> None:
    assert [one.name for one in field(("ledger", "random")).contestants] == ["random lines", LEDGER]
    with pytest.raises(InvalidInput, match="No contestant is called 'ledgre'"):
        field(("ledgre",))


def test_missing_peers_are_named_with_the_way_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.split(".")[0] in ("langchain", "langchain_core", "litellm"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    for name in ("langchain", "litellm"):
        monkeypatch.delitem(sys.modules, f"holdfast.lab.contestants.{name}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    found = field()
    assert found.contestants == FIELD
    assert [what.partition(" (")[0] for what in found.left_out] == [name for names in PEERS.values() for name in names]
    assert all("pip install 'holdfast[peers]'" in what for what in found.left_out)
    assert [what.partition(" (")[0] for what in field(("tr",)).left_out] == ["LangChain trim"]
    assert field(("ledger",)).left_out == ()
    with pytest.raises(InvalidInput, match=r"LiteLLM compress cannot take part: .* pip install 'holdfast\[peers\]'"):
        field(("ledger", "litellm"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["langchain", "litellm"])
def test_peers_through_their_real_packages(package: str, history: list[Message]) -> None:
    pytest.importorskip(package)
    module = importlib.import_module(f"holdfast.lab.contestants.{package}")
    assert PEERS[package] == tuple(contestant.name for contestant in getattr(module, package.upper()))
    for contestant in getattr(module, package.upper()):
        first = contestant.compact(history[: len(history) // 2], job(2_000), None)
        left = contestant.compact(history[len(history) // 2 :], job(2_000), first)
        assert 0 < tokens_of(left.messages, CHARS) < tokens_of(history, CHARS) / 4
        assert left.problems == 0
