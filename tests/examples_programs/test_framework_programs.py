"""The framework programs in `examples/`, each run as a process against a server that validates requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.clients.upstream import ClientUpstream
from tests.providers import Call, Request, Say

PROGRAMS = Path(__file__).parents[2] / "examples"
PAGES = 9
PACKAGES = {
    "langchain_agent.py": "langchain",
    "langgraph_agent.py": "langgraph",
    "openai_agents_session.py": "agents",
    "pydantic_ai_agent.py": "pydantic_ai",
    "haystack_agent.py": "haystack",
    "agent_framework_agent.py": "agent_framework",
}


def read_pages(request: Request) -> Any:
    """Reads the next page that the prompt does not mention, then answers."""
    messages = json.dumps(request.body.get("messages") or request.body.get("input"))
    unread = [number for number in range(1, PAGES + 1) if f"page{number}.md" not in messages]
    return Say(calls=(Call("read_file", {"path": f"page{unread[0]}.md"}),)) if unread else "Page 3 mentions a ship."


@pytest.mark.parametrize("program", PACKAGES)
def test_program_reads_more_than_its_window_holds_and_answers(program: str, tmp_path: Path) -> None:
    if not find_spec(PACKAGES[program]):
        pytest.skip(f"{PACKAGES[program]} is not installed")
    for number in range(1, PAGES + 1):
        (tmp_path / f"page{number}.md").write_text(f"Page {number} of the log.\n" + "Calm sea, no ships. " * 120)
    with ClientUpstream(read_pages, window=4_000) as server:
        more = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url, "OPENAI_MODEL": "m", "WINDOW": "4000"}
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / program), str(tmp_path), "Which page mentions a ship?"],
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "CompactionCompleted" in done.stdout
    assert done.stdout.splitlines()[-1] == "Page 3 mentions a ship."
    assert server.refused == [] and server.overflowed == 0
