"""Contestants of the lab: simple baselines, installed peers, and Holdfast itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...compaction import compact
from ...errors import InvalidInput
from ...io.installation import install_command
from ...messages import Message, encode_all
from ...models import ScriptedModel
from ...strategies import KeepLedger, TokenWindow, Truncate
from .base import (
    CompactFunction,
    Contestant,
    ContestantFamily,
    ContestantResult,
    ContestantTask,
    Stopwatch,
    count_message_tokens,
    result_from_payloads,
)
from .simple import SIMPLE

if TYPE_CHECKING:
    from ...types import Strategy


__all__ = [
    "LEDGER",
    "OURS",
    "PEERS",
    "REAL",
    "SIMPLE",
    "CompactFunction",
    "Contestant",
    "ContestantFamily",
    "ContestantResult",
    "ContestantTask",
    "Lineup",
    "choose_contestants",
    "count_message_tokens",
]
LEDGER = "Holdfast ledger"


def with_compact(strategy: Callable[[int], Strategy]) -> CompactFunction:
    """Compacts through `compact()`, passing the previous round's checkpoint."""

    def run(new: Sequence[Message], task: ContestantTask, previous: ContestantResult | None) -> ContestantResult:
        payloads = [*(previous.payloads if previous else ()), *encode_all(list(new), task.format)]
        watch = Stopwatch()
        result = compact(
            payloads,
            budget=task.budget,
            target=task.budget,
            strategy=strategy(task.budget),
            estimator=task.estimator,
            format=task.format,
            previous=previous.checkpoint if previous else None,
        )
        return result_from_payloads(result.messages, task.format, watch.seconds, result.checkpoint)

    return run


def with_real_summary(
    new: Sequence[Message], task: ContestantTask, previous: ContestantResult | None
) -> ContestantResult:
    """Compacts through `compact()` with a summarizer that returns the summary of the tool itself."""
    if task.summary is None:
        raise InvalidInput("There is no summary at this place: measure this contestant where the tool wrote one.")
    payloads = [*(previous.payloads if previous else ()), *encode_all(list(new), task.format)]
    model = ScriptedModel(task.summary, repeat=True)
    watch = Stopwatch()
    result = compact(
        payloads,
        budget=task.budget,
        target=task.budget,
        summarizer=model,
        estimator=task.estimator,
        format=task.format,
        previous=previous.checkpoint if previous else None,
    )
    if result.fallback:
        raise InvalidInput(f"The summary was not used, but the {result.fallback}: {result.remarks[0]}.")
    return result_from_payloads(result.messages, task.format, watch.seconds, result.checkpoint)


OURS = (
    Contestant("Holdfast window", "holdfast", with_compact(TokenWindow), "TokenWindow: the newest turns"),
    Contestant(
        "Holdfast truncation",
        "holdfast",
        with_compact(lambda budget: Truncate(max_tokens=budget)),
        "Truncate: the newest turns behind a note",
    ),
    Contestant(
        LEDGER,
        "holdfast",
        with_compact(lambda budget: KeepLedger(budget)),
        "KeepLedger: notes of all that went before, and the newest messages",
    ),
    Contestant(
        "Holdfast summary",
        "holdfast",
        with_real_summary,
        "the tool's own summary, as the answer of the model that compact() asks",
        needs_summary=True,
    ),
)
REAL = "real summary"
"""The summary that the tool itself wrote."""
PEERS = {
    "langchain": ("LangChain trim", "LangChain clear"),
    "litellm": ("LiteLLM compress",),
}
"""Contestants from other packages, by package; listed even if the package is not installed."""


class Lineup(NamedTuple):
    """Selected contestants, and those left out because a package is missing."""

    contestants: tuple[Contestant, ...]
    left_out: tuple[str, ...] = ()


def choose_contestants(chosen: Sequence[str] = ()) -> Lineup:
    """Selects the available contestants whose names contain one of the words; all without words."""
    found = list(SIMPLE)
    absent: dict[str, str] = {}
    for package, names in PEERS.items():
        try:
            found += getattr(importlib.import_module(f".{package}", __name__), package.upper())
        except ImportError:
            absent |= dict.fromkeys(names, f"the package {package} is not installed: {install_command('peers')}")
    found += OURS
    words = [word.strip().lower() for word in chosen] or [""]
    for word in words:
        if not any(word in contestant.name.lower() for contestant in found):
            raise InvalidInput(_no_match_message(word, found, absent))
    return Lineup(
        tuple(one for one in found if _is_chosen(one.name, words)),
        tuple(f"{name} ({why})" for name, why in absent.items() if _is_chosen(name, words)),
    )


def _is_chosen(name: str, words: Sequence[str]) -> bool:
    return any(word in name.lower() for word in words)


def _no_match_message(word: str, found: Sequence[Contestant], absent: Mapping[str, str]) -> str:
    for name, why in absent.items():
        if word in name.lower():
            return f"{name} is not available: {why}."
    names = ", ".join(contestant.name for contestant in found)
    return f"No contestant matches {word!r}: choose from {names}."
