"""Leads and losses over several compactions, always on common cuts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.lab.contestants import LEDGER, choose_contestants
from holdfast.lab.measures import RetentionScore
from holdfast.lab.report import KindReport, LedgerLead, build_report
from holdfast.lab.results import LabSettings, ScoreRow, SessionResults
from holdfast.lab.run import LabResults

SETTINGS = LabSettings(budgets=(4_000,), rounds=(3,), contestants=("tail w", "head", "ledger"))
TAIL, HEAD = "tail window", "head and tail"
Kept = Mapping[tuple[str, int], float]
"""Shares kept by one contestant, by session and cut; missing cuts failed."""
HARDNESS = {"easy": 0.9, "fair": 0.7, "hard": 0.3, "worst": 0.1}
EVERYWHERE: Kept = {(session, cut): kept / cut for session, kept in HARDNESS.items() for cut in (1, 2)}


def better(kept: Kept, by: float) -> Kept:
    return {cut: share + by for cut, share in kept.items()}


def without(kept: Kept, *failed: str) -> Kept:
    return {cut: share for cut, share in kept.items() if cut[0] not in failed}


def row(contestant: str, cut: tuple[str, int], kept: float, rounds: int, tokens: int) -> ScoreRow:
    score = RetentionScore(kept, kept, kept, kept, kept, kept, kept, kept, fetch=round(1_000 * (1 - kept)), invented=0)
    return ScoreRow(cut[0], cut[1], contestant, 4_000, rounds, score, tokens, 0.1)


def kind(once: Mapping[str, Kept], in_a_row: Mapping[str, Kept] | None = None, tokens: int = 3_000) -> KindReport:
    """A report on sessions with these shares."""

    def rows(of: Mapping[str, Kept], session: str, rounds: int) -> tuple[ScoreRow, ...]:
        found = ((name, cut, share) for name, kept in of.items() for cut, share in kept.items() if cut[0] == session)
        return tuple(row(*one, rounds, 3_000 if one[0] == LEDGER else tokens) for one in found)

    sessions = [
        SessionResults(name, "plain", f"{name}.json", rows(once, name, 1), rows(in_a_row or {}, name, 3))
        for name in HARDNESS
    ]
    return build_report(LabResults(SETTINGS, sessions), choose_contestants(SETTINGS.contestants)).kinds[0]


def lead(once: Mapping[str, Kept], quantity: str = "names") -> LedgerLead:
    return next(lead for lead in kind(once).leads if lead.quantity == quantity)


def test_lead_is_over_best_other() -> None:
    kept = {LEDGER: better(EVERYWHERE, 0.1), TAIL: better(EVERYWHERE, 0.02), HEAD: EVERYWHERE}
    names, fetch = lead(kept), lead(kept, "fetch")
    assert (names.best, names.ahead.value) == (TAIL, pytest.approx(0.08))
    assert (fetch.best, fetch.ahead.value) == (TAIL, pytest.approx(-80)), "of tokens to read again, fewer are better"


def test_lead_compares_common_cuts_only() -> None:
    """Equal on common cuts: the ledger failed on the hardest session, the other on the easiest."""
    found = lead({LEDGER: without(EVERYWHERE, "worst"), TAIL: without(EVERYWHERE, "easy")})
    assert (found.ahead.value, found.ahead.low, found.ahead.high) == (0, None, None), "two sessions have no interval"
    assert found.ledger == pytest.approx(0.375), "on the cuts of the lead"


def test_lead_matches_cuts_within_a_session() -> None:
    first, second = ({cut: share for cut, share in EVERYWHERE.items() if cut[1] == place} for place in (1, 2))
    assert kind({LEDGER: first, TAIL: second}).leads == []


def test_lead_ignores_advantage_of_failed_cuts() -> None:
    kept = {LEDGER: better(EVERYWHERE, 0.1), TAIL: better(EVERYWHERE, 0.05), HEAD: without(EVERYWHERE, "hard", "worst")}
    assert (lead(kept).best, lead(kept).ahead.value) == (TAIL, pytest.approx(0.05))


def test_lead_needs_the_ledger() -> None:
    assert kind({TAIL: EVERYWHERE}).leads == []


def test_lead_excludes_contestants_over_budget() -> None:
    assert kind({LEDGER: EVERYWHERE, TAIL: better(EVERYWHERE, 0.1)}, tokens=4_300).leads == []


def test_relative_loss_uses_common_cuts() -> None:
    """One compaction failed at an easy session, three in a row at a hard one: neither counts."""
    halved = {cut: share / 2 for cut, share in EVERYWHERE.items() if cut[1] == 2}
    found = kind({TAIL: without(EVERYWHERE, "easy")}, {TAIL: without(halved, "worst")})
    (cell,) = found.in_a_row
    assert cell.fall == {"names": pytest.approx(0.5), "in_context": pytest.approx(0.5)}
