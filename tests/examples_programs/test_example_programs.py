"""The programs in `examples/`, each run as a process against a server that validates requests as the provider would."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.transcripts.examples import example_path
from providers import Answer, Call, ProviderServer, Request, Say

PROGRAMS = Path(__file__).parents[2] / "examples"
SUMMARY = "## Completed Work\n- Pages 1 to 20 were read.\n## Pending Work\n- [ ] the other pages"
STEP = re.compile(r"history (\d+) messages, sent (\d+) messages, ([\d,]+) tokens")


def environment(server: ProviderServer, **more: str) -> dict[str, str]:
    given = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": server.openai_url,
        "OPENAI_MODEL": "gpt-test",
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_MODEL": "claude-test",
    }
    return {**os.environ, **given, **more}


def run(server: ProviderServer, program: str, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *arguments],
        env=environment(server, **more),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for number in range(1, 41):
        (tmp_path / f"page{number}.md").write_text(
            f"Page {number} of the harbour log.\n" + "Calm sea, no ships. " * 120
        )
    return tmp_path


class PageReader:
    """Lists the folder, reads forty pages one by one, then answers; a request without tools is for a summary."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, request: Request) -> Answer:
        if "tools" not in request.body:
            return SUMMARY
        self.steps += 1
        if self.steps > 41:
            return "No page mentions a ship."
        return Say(calls=(Call("read_file", {"path": f"page{self.steps - 1}.md" if self.steps > 1 else "."}),))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", ["openai_loop.py", "anthropic_loop.py"])
def test_loop_reads_more_than_its_window_holds_and_answers(program: str, pages: Path) -> None:
    with ProviderServer(PageReader(), window=12_000) as server:
        printed = run(server, program, str(pages), "Which page mentions a ship?", WINDOW="12000")
        assert not server.refused
        summaries = sum("tools" not in request.body for request in server.requests)
        first_results = json.dumps(server.requests[1].body["messages"])
        last_request = json.dumps(server.requests[-1].body["messages"])
    *steps, answer = printed.splitlines()
    assert answer == "No page mentions a ship."
    assert "page1.md" in first_results and "page40.md" in first_results
    counted = [[int(n.replace(",", "")) for n in found.groups()] for line in steps if (found := STEP.fullmatch(line))]
    assert len(counted) == len(steps) >= 42
    history, sent, _ = counted[-1]
    assert history == 83
    assert sent < 60 if summaries else "[cut: " in last_request, "archived behind a summary, or a trail of cut results"
    assert max(tokens for _, _, tokens in counted) <= 12_000
    assert bool(summaries) == (program == "anthropic_loop.py")


def test_loop_reads_no_file_outside_the_folder(pages: Path) -> None:
    script = [Say(calls=(Call("read_file", {"path": "../../etc/passwd"}),)), "refused"]
    with ProviderServer(script) as server:
        assert run(server, "openai_loop.py", str(pages), "Read it.").endswith("refused\n")
        assert server.requests[-1].body["messages"][-1]["content"] == "Error: the path is outside the folder."


def test_loop_recovers_from_an_overflow_of_an_unknown_window(pages: Path) -> None:
    with ProviderServer(PageReader(), window=12_000) as server:
        printed = run(server, "openai_loop.py", str(pages), "Which page mentions a ship?")
        assert server.overflowed == 1 and not server.refused
    assert printed.endswith("No page mentions a ship.\n")


def test_recall_tools_find_what_was_archived() -> None:
    def script(request: Request) -> Answer:
        newest = request.body["messages"][-1]
        if newest["role"] == "tool" and (found := re.search(r"INC-\d+", newest["content"])):
            return f"It was {found[0]}."
        return Say(calls=(Call("recall_search", {"query": "INC-0871", "archived": True}),))

    with ProviderServer(script) as server:
        printed = run(server, "recall_tools.py", str(example_path()), "Which ticket was the incident?", BUDGET="12000")
        assert not server.refused
    first, call, answer = printed.splitlines()
    before, after = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+(?= (?:->|tokens))", first))
    assert first.startswith("compacted: ") and after <= 12_000 < 100_000 < before
    assert call == 'recall_search {"query": "INC-0871", "archived": true}'
    assert answer == "It was INC-0871."


def test_local_model_writes_the_summary() -> None:
    with ProviderServer(SUMMARY) as server:
        printed = run(
            server, "local_model.py", str(example_path("support")), "3000", SUMMARIZER=server.openai_url + "#small"
        )
        assert not server.refused
        assert {request.model for request in server.requests} == {"small"}
        assert "Keep every number and every file name." in server.requests[0].prompt
    first, second, *rest = printed.splitlines()
    assert first.startswith("compacted: ")
    assert re.fullmatch(r"\d+ of \d+ messages archived", second)
    assert not [line for line in rest if line.startswith("written by")]
    assert "Pages 1 to 20 were read." in printed


def test_local_model_that_is_down_falls_back_to_the_ledger() -> None:
    with ProviderServer() as server:
        port = free_port()
        printed = run(
            server,
            "local_model.py",
            str(example_path("support")),
            "3000",
            SUMMARIZER=f"http://127.0.0.1:{port}/v1#small",
        )
    assert "written by the ledger instead of the model" in printed


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_every_program_is_run_by_a_test() -> None:
    folder = Path(__file__).parent
    files = (Path(__file__), folder / "web_replicas.py", folder.parent / "integrations" / "test_programs.py")
    tests = "".join(path.read_text(encoding="utf-8") for path in files)
    unnamed = [path.name for path in sorted(PROGRAMS.glob("*.py")) if f'"{path.name}"' not in tests]
    assert [name for name in unnamed if "__main__" in (PROGRAMS / name).read_text(encoding="utf-8")] == []
