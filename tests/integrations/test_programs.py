"""The programs of docs/integrations.md and of `examples/` run as they stand; the table has each framework."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clients.upstream import ClientUpstream
from tests.integrations.agents import AGENTS, is_installed
from tests.integrations.comparison import HEAD, PAGE
from tests.integrations.harbour_task import ANSWER, SMALL, Harbour, HarbourModel
from tests.providers import Call, Request, Say

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "langchain_agent.py": "langchain",
    "langgraph_agent.py": "langgraph",
    "openai_agents_session.py": "agents",
    "pydantic_ai_agent.py": "pydantic_ai",
    "haystack_agent.py": "haystack",
    "agent_framework_agent.py": "agent_framework",
    "litellm_loop.py": "litellm",
    "google_adk_app.py": "google.adk",
    "llama_index_agent.py": "llama_index",
    "ag2_agent.py": "ag2",
    "agno_agent.py": "agno",
    "crewai_agent.py": "crewai",
    "strands_agent.py": "strands",
}
SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
GIVEN = f"from tests.integrations.harbour_task import read_log\nPROMPT = {SMALL.prompt!r}\nanswer = {ANSWER!r}\n"
PAGES = 9
SHIP = "Page 3 mentions a ship."


def read_pages(request: Request) -> Any:
    """Reads the next page that the prompt does not mention, then answers."""
    messages = json.dumps(request.body.get("messages") or request.body.get("input"))
    unread = [number for number in range(1, PAGES + 1) if f"page{number}.md" not in messages]
    return Say(calls=(Call("read_file", {"path": f"page{unread[0]}.md"}),)) if unread else SHIP


def page_programs(folder: Path) -> list[Path]:
    """Writes the programs of the page whose packages are installed."""
    files = []
    for title, text in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        for program in PROGRAM.findall(text):
            if all(map(is_installed, re.findall(r"^(?:from|import) ([\w.]+)", program, re.MULTILINE))):
                files.append(folder / f"{title} program.py")
                files[-1].write_text(GIVEN + program)
    return files


def test_programs_of_the_page_and_examples_run_as_they_stand(tmp_path: Path) -> None:
    for number in range(1, PAGES + 1):
        (tmp_path / f"page{number}.md").write_text(f"Page {number} of the log.\n" + "Calm sea, no ships. " * 120)
    examples = [ROOT / "examples" / name for name, package in EXAMPLES.items() if is_installed(package)]
    with Harbour() as harbour, ClientUpstream(read_pages, window=4_000) as library:
        harbour.script = lambda request: HarbourModel(SMALL)(request)  # one for each request: there are many agents
        programs = dict.fromkeys(page_programs(tmp_path), harbour.openai_url)
        programs |= dict.fromkeys(examples, library.openai_url)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.integrations.run_programs"),
                *(argument for file, url in programs.items() for argument in (url, str(file))),
            ],
            env={
                **os.environ,
                "OPENAI_API_KEY": "k",
                "OPENAI_MODEL": "gpt-4o",
                "WINDOW": "4000",
                "ANTHROPIC_API_KEY": "k",
                "ANTHROPIC_MODEL": "claude-m",
                "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "examples"))),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
        )
    runs = dict(zip(programs, map(json.loads, done.stdout.splitlines()), strict=True))
    outcomes = {file.name: run["problem"] or run["answer"] for file, run in runs.items()}
    assert outcomes == {file.name: SHIP if file in examples else ANSWER for file in programs}
    assert all("CompactionCompleted" in runs[file]["printed"] for file in examples)
    for server in (harbour, library):
        assert server.refused == [] and server.overflowed == 0


def test_table_of_the_page_has_each_framework_finished_with_holdfast() -> None:
    rows = PAGE.read_text(encoding="utf-8").partition(HEAD)[2]
    for name in AGENTS:
        ours = rf"^\| {re.escape(name)} [\d.]+ \| \*\*Holdfast\*\*, \d+ compactions \| finished \| 80 "
        assert re.search(ours, rows, re.MULTILINE), name
