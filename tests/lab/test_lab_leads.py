"""Who is ahead of whom, and what several compactions in a row lose: always on the same cuts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.lab.contestants import LEDGER, field
from holdfast.lab.measures import Score
from holdfast.lab.report import Kind, Lead, report
from holdfast.lab.results import Row, SessionResults
from holdfast.lab.run import Results
from holdfast.lab.settings import Settings

SETTINGS = Settings(budgets=(4_000,), rounds=(3,), contestants=("tail w", "head", "ledger"))
TAIL, HEAD = "tail window", "head and tail"
Kept = Mapping[tuple[str, int], float]
"""The share that one contestant kept, by session and cut: it failed at those that are not there."""
HARDNESS = {"easy": 0.9, "fair": 0.7, "hard": 0.3, "worst": 0.1}
EVERYWHERE: Kept = {(session, cut): kept / cut for session, kept in HARDNESS.items() for cut in (1, 2)}


def better(kept: Kept, by: float) -> Kept:
    return {cut: share + by for cut, share in kept.items()}


def without(kept: Kept, *failed: str) -> Kept:
    return {cut: share for cut, share in kept.items() if cut[0] not in failed}


def row(contestant: str, cut: tuple[str, int], kept: float, rounds: int, tokens: int) -> Row:
    score = Score(kept, kept, kept, kept, kept, kept, kept, kept, fetch=round(1_000 * (1 - kept)), invented=0)
    return Row(cut[0], cut[1], contestant, 4_000, rounds, score, tokens, 0.1)


def kind(once: Mapping[str, Kept], in_a_row: Mapping[str, Kept] | None = None, tokens: int = 3_000) -> Kind:
    """A report on sessions of which only these shares are known."""

    def rows(of: Mapping[str, Kept], session: str, rounds: int) -> tuple[Row, ...]:
        found = ((name, cut, share) for name, kept in of.items() for cut, share in kept.items() if cut[0] == session)
        return tuple(row(*one, rounds, 3_000 if one[0] == LEDGER else tokens) for one in found)

    sessions = [
        SessionResults(name, "plain", f"{name}.json", rows(once, name, 1), rows(in_a_row or {}, name, 3))
        for name in HARDNESS
    ]
    return report(Results(SETTINGS, sessions), field(SETTINGS.contestants)).kinds[0]


def lead(once: Mapping[str, Kept], quantity: str = "names") -> Lead:
    return next(lead for lead in kind(once).leads if lead.quantity == quantity)


def test_the_lead_is_over_the_best_other() -> None:
    kept = {LEDGER: better(EVERYWHERE, 0.1), TAIL: better(EVERYWHERE, 0.02), HEAD: EVERYWHERE}
    names, fetch = lead(kept), lead(kept, "fetch")
    assert (names.best, names.ahead.value) == (TAIL, pytest.approx(0.08))
    assert (fetch.best, fetch.ahead.value) == (TAIL, pytest.approx(-80)), "of tokens to read again, fewer are better"


def test_who_failed_elsewhere_is_neither_ahead_nor_behind() -> None:
    """Equal wherever both are there: the ledger failed at the hardest session, the other at the easiest."""
    found = lead({LEDGER: without(EVERYWHERE, "worst"), TAIL: without(EVERYWHERE, "easy")})
    assert (found.ahead.value, found.ahead.low, found.ahead.high) == (0, None, None), "two sessions have no interval"
    assert found.ledger == pytest.approx(0.375), "on the cuts of the lead"


def test_cuts_of_one_session_are_not_taken_for_each_other() -> None:
    first, second = ({cut: share for cut, share in EVERYWHERE.items() if cut[1] == place} for place in (1, 2))
    assert kind({LEDGER: first, TAIL: second}).leads == []


def test_no_one_is_best_by_failing_where_it_is_hard() -> None:
    kept = {LEDGER: better(EVERYWHERE, 0.1), TAIL: better(EVERYWHERE, 0.05), HEAD: without(EVERYWHERE, "hard", "worst")}
    assert (lead(kept).best, lead(kept).ahead.value) == (TAIL, pytest.approx(0.05))


def test_without_the_ledger_nobody_leads() -> None:
    assert kind({TAIL: EVERYWHERE}).leads == []


def test_who_is_over_the_budget_takes_no_prize() -> None:
    assert kind({LEDGER: EVERYWHERE, TAIL: better(EVERYWHERE, 0.1)}, tokens=4_300).leads == []


def test_the_fall_is_beside_one_compaction_at_the_same_cuts() -> None:
    """One compaction failed at an easy session, three in a row at a hard one: neither counts."""
    halved = {cut: share / 2 for cut, share in EVERYWHERE.items() if cut[1] == 2}
    found = kind({TAIL: without(EVERYWHERE, "easy")}, {TAIL: without(halved, "worst")})
    (cell,) = found.in_a_row
    assert cell.fall == {"names": pytest.approx(0.5), "in_context": pytest.approx(0.5)}
