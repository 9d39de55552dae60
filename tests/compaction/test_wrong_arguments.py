"""A trigger or strategy that cannot be asked is one clear error, wherever it is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import BlockingSessionService, Outcome, acompact, compact
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.io.portal import portal
from holdfast.stores import MemoryStore
from holdfast.strategies import KeepLedger, Pipeline, SlidingWindow
from holdfast.tokens import count_tokens, estimator_for
from holdfast.tokens.budget import Tokens
from holdfast.triggers import OverBudget, TokenCount, all_of, any_of, not_

HISTORY = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "words of a step " * 40} for n in range(20)]
Give = Callable[[Any, BlockingSessionService], object]
TRIGGERS: dict[str, Give] = {
    "compact": lambda given, _: compact(HISTORY, budget=10, trigger=given),
    "compact with a model": lambda given, _: compact(HISTORY, budget=10, trigger=given, summarizer=repr),
    "acompact": lambda given, _: portal.run(lambda: acompact(HISTORY, budget=10, trigger=given)),
    "any_of": lambda given, _: any_of(given),
    "all_of": lambda given, _: all_of(TokenCount(1), given),
    "not_": lambda given, _: not_(given),
    "service.compact": lambda given, service: service.compact("s", given),
    "service.compact with a budget": lambda given, service: service.compact("s", given, budget=100),
    "service.due": lambda given, service: service.due("s", given),
}
STRATEGIES: dict[str, Give] = {
    "compact": lambda given, _: compact(HISTORY, budget=10, strategy=given),
    "acompact": lambda given, _: portal.run(lambda: acompact(HISTORY, budget=10, strategy=given)),
    "Pipeline": lambda given, _: Pipeline(KeepLedger(), given),
    "service.compact": lambda given, service: service.compact("s", strategy=given),
    "service.preview": lambda given, service: service.preview("s", strategy=given),
}


@pytest.fixture
def service() -> Iterator[BlockingSessionService]:
    with BlockingSessionService(MemoryStore()) as sessions:
        sessions.create(id="s")
        sessions.append("s", HISTORY)
        yield sessions


@pytest.mark.parametrize("given", [4000, "tokens", OverBudget, TokenCount])
@pytest.mark.parametrize("give", TRIGGERS)
def test_what_is_no_trigger_is_one_clear_error(give: str, given: Any, service: BlockingSessionService) -> None:
    with pytest.raises(InvalidInput, match=r"^A trigger is a callable from a request to a bool, such as TokenCount"):
        TRIGGERS[give](given, service)
    assert service.round("s") == 0


@pytest.mark.parametrize("given", [SlidingWindow, KeepLedger])
@pytest.mark.parametrize("give", STRATEGIES)
def test_a_strategy_class_is_one_clear_error(give: str, given: Any, service: BlockingSessionService) -> None:
    with pytest.raises(InvalidInput, match=f"not the class {given.__name__}"):
        STRATEGIES[give](given, service)
    assert service.round("s") == 0


def test_a_number_is_no_threshold() -> None:
    with pytest.raises(InvalidLimit, match=r"OverBudget takes a threshold such as Tokens\(1000\)"):
        OverBudget(1000)  # type: ignore[arg-type]
    assert compact(HISTORY, budget=400, trigger=OverBudget(Tokens(1000))).outcome is Outcome.COMPACTED


def test_a_trigger_that_fires_on_anything_compacts_after_an_undo(service: BlockingSessionService) -> None:
    service.compact("s", budget=1_000)
    service.undo("s")
    waits = service.compact("s", TokenCount(1), budget=1_000)
    assert waits.outcome is Outcome.NOT_NEEDED and "undone" in waits.why
    assert service.compact("s", lambda request: True, budget=1_000).outcome is Outcome.COMPACTED


def test_no_text_has_no_tokens() -> None:
    for name in ("chars/4", "chars/3"):
        assert count_tokens(estimator_for(name), None) == count_tokens(estimator_for(name), "") == 0
