"""`holdfast lab` on the bundled sessions."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from cli_files import Run
from click.testing import CliRunner

from completion_server import completion_server
from holdfast.cli import main
from holdfast.io.installation import install_command
from lab_story import write_session

QUICK = ("--half", "all", "--budget", "2k,4k", "--rounds", "3", "--only", "tail w,ledger", "--jobs", "1")
QUICKEST = ("--half", "all", "--budget", "2k", "--rounds", "1", "--only", "tail w", "--jobs", "1")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "session.json", 110)


class Measured(NamedTuple):
    """A measured session, and what the lab wrote about it."""

    session: Path
    stdout: str
    page: Path
    data: Path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """One run of the lab, for tests that read different parts of its output."""
    folder = tmp_path_factory.mktemp("measured")
    session, page, data = write_session(folder / "session.json", 110), folder / "lab.html", folder / "data"
    words = ["lab", session, *QUICK, "--page", page, "--json", data]
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0
    return Measured(session, done.stdout, page, data)


@pytest.mark.thorough
def test_lab_example(run: Run) -> None:
    done = run(
        "lab", "example", "--half", "all", "--budget", "4k", "--only", "ledger", "--page", "none", "--rounds", "1"
    )
    assert done.exit_code == 0
    assert "plain: 1 session, 7 cuts" in done.stdout and "Holdfast ledger" in done.stdout


def test_lab_writes_tables_page_and_json(run: Run, measured: Measured) -> None:
    page, data = measured.page, measured.data
    for text in ("plain: 1 session, 5 cuts", "2,000 tokens", "4,000 tokens", "in a row", "Holdfast ledger"):
        assert text in measured.stdout
    assert max(map(len, measured.stdout.splitlines())) <= 100
    assert page.read_text().startswith("<!doctype html>")
    found = json.loads(data.read_text())
    assert {cell["contestant"] for cell in found["kinds"][0]["cells"]} == {"tail window", "Holdfast ledger"}
    again = run("lab", measured.session, *QUICK, "--page", page, "--json", data)
    assert again.exit_code == 0, "its own page may be written again"
    both = [found, json.loads(data.read_text())]
    for one in both:
        for cell in one["kinds"][0]["cells"] + one["kinds"][0]["in_a_row"]:
            cell["milliseconds"] = 0
    assert both[0] == both[1], "the same every time"


def test_lab_prints_surprise_with_leads_and_plots(measured: Measured) -> None:
    page = measured.page.read_text()
    for text in (
        "4,000 tokens: surprise, bits a character; lower is better",
        "4,000 tokens, several in a row, compared with one: surprise, bits a character",
        "predicted from the context by PPMd",
        "surprise, 3 steps",
    ):
        assert text in " ".join(measured.stdout.split())
    for cell in json.loads(measured.data.read_text())["kinds"][0]["cells"]:
        assert all(0 < cell["values"][f"surprise_{steps}"] < 8 for steps in (1, 3, 8))
    shown = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert shown is not None
    units = {one["key"]: one["unit"] for one in json.loads(shown[1])["quantities"]}
    assert units["surprise_1"] == "bits a character" and units["names"] == ""
    assert 'id="surprise"' in page


def test_lab_without_pyppmd_leaves_out_surprise(run: Run, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.lab.surprise.find_spec", lambda name: None)
    done = run("lab", session, *QUICKEST, "--page", "none")
    assert done.exit_code == 0 and "tail window" in done.stdout
    words = " ".join(done.stdout.split())
    left_out = f"Left out: surprise (the package pyppmd is not installed: {install_command('lab')})"
    assert "".join(left_out.split()) in "".join(words.split()), "wrapped anywhere, also inside a long path"
    assert "surprise, bits" not in words


def test_lab_surprise_by_model(run: Run, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    options = (session, "--half", "all", "--budget", "4k", "--only", "tail w", "--jobs", "1", "--page", "none")
    with completion_server() as (api, url):
        done = run("lab", *options, "--surprise-by", "tiny", "--surprise-url", url)
        asked = len(api.requests)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        assert run("lab", *options, "--surprise-by", "tiny").exit_code == 0
    assert done.exit_code == 0 and len(api.requests) == 2 * asked > 0
    assert "surprise, nats a token; lower is better" in done.stdout and "by tiny." in done.stdout
    assert {request["model"] for request in api.requests} == {"tiny"}


def test_lab_surprise_by_unusable_server(
    refused: Callable[..., str], session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    options = (*QUICK, "--page", "none", "--surprise-by", "tiny", "--surprise-url")
    with completion_server("no echo") as (_, url):
        assert "does not echo the prompt" in refused("lab", session, *options, url)
    assert "cannot be reached" in refused("lab", session, *options, url)


def test_lab_cuts_option(run: Run, session: Path) -> None:
    done = run("lab", session, *QUICKEST, "--cuts", "15", "--page", "none")
    assert "plain: 1 session, 10 cuts" in done.stdout


def test_lab_json_to_stdout_prints_tables_to_stderr(run: Run, session: Path) -> None:
    done = run("lab", session, *QUICKEST, "--page", "none", "--json", "-")
    assert json.loads(done.stdout)["settings"]["budgets"] == [2000]
    assert "tail window" in done.stderr


@pytest.mark.parametrize("options", [("--page",), ("--page", "none", "--json"), ("--tune", "--json")])
@pytest.mark.parametrize(
    "work",
    ["years of work", '{"years": "of work"}', '{"deep": ' + "[" * 5_000],
    ids=["text", "an object", "a deep one"],
)
def test_lab_never_overwrites_foreign_files(
    options: tuple[str, ...], work: str, refused: Callable[..., str], session: Path, tmp_path: Path
) -> None:
    thesis = tmp_path / "thesis"
    thesis.write_text(work)
    assert "was not written by the lab" in refused("lab", session, *QUICK, *options, thesis)
    assert thesis.read_text() == work


def test_lab_compresses_gz_files(run: Run, session: Path, tmp_path: Path) -> None:
    data, page, advice = (tmp_path / name for name in ("data.json.gz", "lab.html.gz", "advice.json"))
    advice.touch()
    for _ in range(2):
        assert run("lab", session, *QUICKEST, "--json", data, "--page", page).exit_code == 0
        assert run("lab", session, *QUICKEST, "--tune", "--json", advice).exit_code == 0
    assert json.loads(gzip.decompress(data.read_bytes()))["settings"]["budgets"] == [2000]
    assert gzip.decompress(page.read_bytes()).startswith(b"<!doctype html>")
    assert json.loads(advice.read_text())["sessions"] == 1


def test_lab_reports_why_nothing_was_measured(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "does not exist" in refused("lab", tmp_path / "nowhere")
    (tmp_path / "a.json").write_text('[{"role": "user", "content": "hello"}]')
    assert "did you mean 'report'" in refused("lab", tmp_path, "--half", "reprot")
    assert "No contestant matches" in refused("lab", tmp_path, "--only", "nobody", "--page", "none")
    assert "--budget takes a whole number" in refused("lab", tmp_path, "--budget", "2k,many")
    assert "--budget takes a whole number" in refused("lab", tmp_path, "--budget", "")


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("short", [], "(too short to cut): name longer sessions."),
        ("broken", [], "(not a session): name other sessions."),
        ("broken", ["--tune"], "No session could be simulated: name a folder with sessions."),
        ("session", ["--budget", "1"], "(the newest user message exceeds every budget): give a larger --budget."),
    ],
)
def test_lab_suggests_only_useful_options(
    file: str, options: list[str], words: str, refused: Callable[..., str], session: Path
) -> None:
    session.with_name("short.json").write_text('[{"role": "user", "content": "hello"}]')
    session.with_name("broken.json").write_text("{")
    page = [] if "--tune" in options else ["--page", "none"]
    assert words in refused("lab", session.with_name(f"{file}.json"), "--half", "all", *options, *page)


def test_lab_mentions_other_half(refused: Callable[..., str], session: Path) -> None:
    halves = [
        refused("lab", session, "--half", half, "--budget", "1", "--page", "none") for half in ("learn", "report")
    ]
    assert sum("(in the other half): try --half all." in text for text in halves) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--page", "/nowhere/at/all/lab.html"), "The folder /nowhere/at/all does not exist"),
        (("--json", "/nowhere/at/all/lab.json", "--page", "none"), "The folder /nowhere/at/all does not exist"),
        (("--tune", "--page", "t.html"), "--tune writes no page"),
        (("--tune", "--model", "nosuch"), "The model 'nosuch' is not in the catalog"),
        (("--model", "gpt-4o"), "--model only applies to --tune"),
        (("--tune", "--surprise-by", "tiny"), "--tune does not measure surprise"),
        (("--surprise-url", "http://127.0.0.1:8000"), "--surprise-url only applies to --surprise-by"),
        (("--surprise-by", "tiny", "--surprise-url", "localhost"), "--surprise-url takes an address such as http://"),
    ],
)
def test_lab_rejects_useless_options_before_measuring(
    options: tuple[str, ...], words: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.lab.corpus.session_files", lambda *places: pytest.fail("it was begun"))
    assert words in refused("lab", "example", *options)


def test_lab_tune_prints_recommendation(run: Run, tmp_path: Path) -> None:
    session = write_session(tmp_path / "session.json", 35)
    done = run("lab", session, "--half", "all", "--tune", "--model", "gpt-3.5-turbo", "--jobs", "1")
    assert done.exit_code == 0
    assert "Best for these sessions:" in done.stdout and "$" in done.stdout


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="looks at processes in /proc")
def test_lab_interrupt_ends_all_processes(tmp_path: Path) -> None:
    for n in range(12):
        write_session(tmp_path / f"{n}.json", 200)
    command = [sys.executable, "-m", "holdfast", "lab", str(tmp_path), "--half", "all", "--page", "none", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: len(children.read_text().split()) >= 2 and not ignores_interrupts(process.pid))
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None and b"Traceback" not in process.stderr.read()
    wait_for(lambda: not is_alive(process.pid))


def ignores_interrupts(pid: int) -> bool:
    [mask] = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(600):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within half a minute")


def test_lab_measures_every_session_of_a_folder_by_default(run: Run, session: Path) -> None:
    for number in range(3):
        (session.parent / f"another{number}.json").write_bytes(session.read_bytes())
    done = run("lab", session.parent, "--cuts", "1", *QUICKEST[2:], "--page", "none", "--json", "-")
    assert len(json.loads(done.stdout)["sessions"]) == 4
