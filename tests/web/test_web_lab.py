"""Lab reports in the inspector: the files of a folder, each as it was measured, and nothing of other files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from lab_files import cell, lab_report, tuning_advice, write_reports
from test_web_api import HOSTILE
from web_harness import run_inspector

from holdfast.web.addresses import encode_id

pytestmark = pytest.mark.anyio


async def test_reports_of_a_folder_are_listed_newest_first_and_other_files_are_not(tmp_path: Path) -> None:
    write_reports(tmp_path)
    for age, name in enumerate(("measured.json", "tuned.json", "lab.html")):
        os.utime(tmp_path / name, (1_700_000_000 - 60 * age,) * 2)
    async with run_inspector(reports=tmp_path) as running:
        page = (await running.get("/lab")).text
        places = [page.index(f'href="/lab/{name}"') for name in ("measured.json", "tuned.json", "lab.html")]
        assert places == sorted(places)
        assert "2023-11-14" in page and "package.json" not in page and "index.html" not in page
        assert '<a href="/lab" aria-current="true">Lab</a>' in page


@pytest.mark.parametrize("name", ["lab.html", "measured.json"])
async def test_report_has_its_values_by_kind_and_budget(tmp_path: Path, name: str) -> None:
    write_reports(tmp_path)
    async with run_inspector(reports=tmp_path) as running:
        page = (await running.get(f"/lab/{name}")).text
        assert "5 sessions, 35 cuts" in page
        assert "names in context .87, +0.46 (+0.40 to +0.50) against tail window" in page
        assert '<td class="n"><strong>.87</strong></td>' in page and "After 3 compactions in a row" in page
        assert page.count("too large") == 2  # retention and surprise at 4,000 tokens, dim: never the best
        assert "<strong>.99</strong>" not in page
        assert "too large" not in (await running.get(f"/lab/{name}?kind=pi&budget=2000")).text
        assert (await running.get(f"/lab/{name}?kind=none&budget=7")).text == page


async def test_tuning_advice_has_its_sentence_and_policies(tmp_path: Path) -> None:
    write_reports(tmp_path)
    async with run_inspector(reports=tmp_path) as running:
        page = (await running.get("/lab/tuned.json")).text
        assert tuning_advice("tail window").sentence in page and "$6.50" in page and "<strong>85%</strong>" in page


@pytest.mark.parametrize(
    "name", ["package.json", "missing.json", "../secret.json", "..%2fsecret.json", "%2fetc%2fpasswd"]
)
async def test_only_reports_of_the_folder_are_shown(tmp_path: Path, name: str) -> None:
    write_reports(tmp_path / "reports")
    (tmp_path / "secret.json").write_bytes((tmp_path / "reports" / "tuned.json").read_bytes())
    async with run_inspector(reports=tmp_path / "reports") as running:
        for path in (f"/lab/{name}", f"/lab/{encode_id(name)}"):
            reply = await running.get(path)
            assert reply.status_code == 404 and "85%" not in reply.text and "root:" not in reply.text


@pytest.mark.parametrize(
    "content", ['{"settings":{}}', '{"settings":', '{"sessions":1,"compacted":[]}', '{"settings":' * 9]
)
async def test_file_that_only_begins_like_a_report_is_refused_with_a_reason(tmp_path: Path, content: str) -> None:
    (tmp_path / "cut.json").write_text(content)
    async with run_inspector(reports=tmp_path) as running:
        assert "cut.json" in (await running.get("/lab")).text
        reply = await running.get("/lab/cut.json")
        assert reply.status_code == 404 and "is not a report of this version" in reply.text


async def test_report_without_sessions_or_budgets_says_so(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text(
        '{"settings":{"budgets":[]},"contestants":[],"left_out":[],"kinds":[],"sessions":[],"not_measured":{},"failures":[]}'
    )
    async with run_inspector(reports=tmp_path) as running:
        assert "measured no session" in (await running.get("/lab/none.json")).text


async def test_hostile_names_in_a_report_stay_text(tmp_path: Path) -> None:
    write_reports(tmp_path, HOSTILE)
    hostile = "<img src=x onerror=alert(1)>.json"
    (tmp_path / hostile).write_bytes((tmp_path / "measured.json").read_bytes())
    async with run_inspector(reports=tmp_path) as running:
        for path in ("/lab", "/lab/lab.html", "/lab/tuned.json", f"/lab/{encode_id(hostile)}"):
            reply = await running.get(path)
            assert reply.status_code == 200 and "onerror=alert(1)&gt;" in reply.text
            assert "<img" not in reply.text and "<script>alert" not in reply.text and reply.text.count("<script") == 1


async def test_report_page_is_bounded(tmp_path: Path) -> None:
    report = lab_report()
    many = [cell(f"contestant {number} " + "x" * 5_000, 4_000, 0.5) for number in range(1_000)]
    kinds = [msgspec.structs.replace(report.kinds[0], kind="k" * 5_000, cells=many[:10]) for _ in range(100)]
    kinds[0] = msgspec.structs.replace(report.kinds[0], cells=many)
    large = msgspec.structs.replace(report, kinds=kinds, failures=["failed " * 1_000] * 1_000)
    (tmp_path / "large.json").write_bytes(msgspec.json.encode(large))
    async with run_inspector(reports=tmp_path) as running:
        reply = await running.get("/lab/large.json")
        assert reply.status_code == 200 and len(reply.content) < 700_000


async def test_without_a_folder_the_page_says_how_to_name_one() -> None:
    async with run_inspector() as running:
        assert "--reports FOLDER" in (await running.get("/lab")).text
        assert (await running.get("/lab/lab.html")).status_code == 404


async def test_login_of_an_owner_sees_no_reports(tmp_path: Path) -> None:
    write_reports(tmp_path)
    async with run_inspector(reports=tmp_path, owner="ann") as running:
        page = await running.get("/lab")
        assert "lab.html" not in page.text and "every owner" in page.text
        assert (await running.get("/lab/lab.html")).status_code == 404
