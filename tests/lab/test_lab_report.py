"""Report and page of one session."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from holdfast.lab.contestants import LEDGER, choose_contestants
from holdfast.lab.page import PAGE_MARKER, is_lab_output, render_page
from holdfast.lab.report import LabReport, build_report
from holdfast.lab.results import LabSettings, NotMeasured, SessionResults
from holdfast.lab.run import LabResults, run_lab
from holdfast.lab.trial import OTHER_HALF, measure_session
from holdfast.transcripts.examples import example_path
from real_sessions import SESSIONS

QUICK = LabSettings(budgets=(4_000,), rounds=(3,), cuts=1, half="all", contestants=("tail w", "ledger"))


@pytest.fixture(scope="module")
def results() -> LabResults:
    return run_lab([example_path()], QUICK)


@pytest.fixture(scope="module")
def made(results: LabResults) -> LabReport:
    return build_report(results, choose_contestants(QUICK.contestants))


def test_report_has_row_per_contestant_budget_and_cut(results: LabResults) -> None:
    (session,) = results.sessions
    assert session.kind == "plain" and results.kinds == ["plain"]
    assert sorted((row.contestant, row.budget, row.rounds) for row in session.rows) == [
        (LEDGER, 4_000, 1),
        ("tail window", 4_000, 1),
    ]
    assert {row.rounds for row in session.in_a_row} == {3}
    assert not session.at_summary and not session.failures


def test_report_ledger_is_valid_and_invents_nothing(made: LabReport) -> None:
    cells = [*made.kinds[0].cells, *made.kinds[0].in_a_row]
    assert [cell.contestant for cell in cells] == 2 * ["tail window", LEDGER]
    for cell in cells:
        if cell.contestant == LEDGER:
            assert cell.values["invented"] == 0
            assert cell.valid == 1.0
            assert not cell.over
        else:
            assert cell.valid is None


def test_report_names_agree_with_score(results: LabResults) -> None:
    (session,) = results.sessions
    (names,) = session.names
    for row in session.rows:
        digits = names.kept[row.contestant]
        assert len(digits) == len(names.names)
        assert row.score.names == pytest.approx(sum(digit != "0" for digit in digits) / len(digits))
        assert row.score.in_context == pytest.approx(digits.count("2") / len(digits))


def test_page_is_self_contained(made: LabReport, tmp_path: Path) -> None:
    page = render_page(made)
    assert page.startswith(PAGE_MARKER) and page.rstrip().endswith("</html>")
    assert not re.search(r"https?://|//cdn|<link|@import|url\(|src\s*=|import\(|fetch\(", page)
    assert "{{" not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None and json.loads(data[1])["report"]["kinds"][0]["kind"] == "plain"
    (tmp_path / "ours.html").write_text(page)
    (tmp_path / "other.html").write_text("<html>mine</html>")
    assert is_lab_output(tmp_path / "ours.html") and not is_lab_output(tmp_path / "other.html")


def test_page_escapes_session_text(made: LabReport) -> None:
    bad = msgspec.structs.replace(made, failures=["</script><script>alert(1)</script>"])
    assert render_page(bad).count("</script>") == render_page(made).count("</script>")


def test_unmeasured_files_have_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "short.json").write_text('[{"role": "user", "content": "hello"}]')
    (tmp_path / "odd.json").write_text('[{"role": "user", "content": 7}]')
    for name, why in (("broken", "not a session"), ("short", "too short to cut"), ("odd", "unreadable messages")):
        outcome = measure_session(tmp_path / f"{name}.json", QUICK)
        assert isinstance(outcome, NotMeasured) and outcome.why.startswith(why), name
    halves = [
        measure_session(example_path(), msgspec.structs.replace(QUICK, half=half)) for half in ("learn", "report")
    ]
    (other,) = (outcome for outcome in halves if isinstance(outcome, NotMeasured))
    assert other.why == OTHER_HALF


@pytest.mark.thorough
@pytest.mark.skipif(not SESSIONS, reason="HOLDFAST_SESSIONS names no folder with sessions")
def test_report_of_real_session_with_summary() -> None:
    smallest = sorted((file for file in SESSIONS if "claude" in str(file)), key=lambda file: file.stat().st_size)
    for file in smallest[len(smallest) // 2 :]:
        found = measure_session(file, QUICK)
        if isinstance(found, SessionResults) and found.at_summary:
            break
    else:
        pytest.skip("no session with a summary")
    rows = {row.contestant: row for row in found.at_summary}
    assert rows[LEDGER].tokens <= rows["real summary"].tokens
    assert rows[LEDGER].score.invented == 0
    assert (rows[LEDGER].score.in_context or 0) >= (rows["tail window"].score.in_context or 0)
