"""Holdfast's own: the ledger, a window, and truncation, through the front door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...compaction import compact
from ...messages import Message, encode_all
from ...strategies import KeepLedger, TokenWindow, Truncate
from .contestant import Compacted, Compacting, Contestant, Job, Stopwatch, from_payloads

if TYPE_CHECKING:
    from ...types import Strategy

LEDGER = "Holdfast ledger"


def through_the_front_door(strategy: Callable[[int], Strategy]) -> Compacting:
    """In a row, each call is given the last one's checkpoint."""

    def run(new: Sequence[Message], job: Job, previous: Compacted | None) -> Compacted:
        payloads = [*(previous.payloads if previous else ()), *encode_all(list(new), job.format)]
        watch = Stopwatch()
        result = compact(
            payloads,
            budget=job.budget,
            target=job.budget,
            strategy=strategy(job.budget),
            estimator=job.estimator,
            format=job.format,
            previous=previous.checkpoint if previous else None,
        )
        return from_payloads(result.messages, job.format, watch.seconds, result.checkpoint)

    return run


OURS = (
    Contestant("Holdfast window", "holdfast", through_the_front_door(TokenWindow), "TokenWindow: the newest turns"),
    Contestant(
        "Holdfast truncation",
        "holdfast",
        through_the_front_door(lambda budget: Truncate(max_tokens=budget)),
        "Truncate: the newest turns behind a note",
    ),
    Contestant(
        LEDGER,
        "holdfast",
        through_the_front_door(lambda budget: KeepLedger(budget)),
        "KeepLedger: notes of all that went before, and the newest messages",
    ),
)
