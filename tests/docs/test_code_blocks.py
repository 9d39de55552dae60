"""Every program in README.md and docs runs, and every command in them exists.

A block of Python runs in the order of its page, in one process, with the page's own names and the stand-ins of `given`:
messages, a server that plays the providers, a session. One that another test runs, or that cannot run, says so in a
comment above it. Commands are parsed, not run: most need a key, a server or files of the reader.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import anyio
import click
import pytest
from openai.types.chat import ChatCompletion

from holdfast import CompactionResult, MemoryStore, SessionService, SQLiteStore, check, compact
from holdfast.cli import main
from holdfast.messages import Tool, encode_tools
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path
from providers import ProviderServer

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs").exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"run by (tests/[\w/]+\.py)")
FILE = re.compile(r"\w+\.py")
COMMAND = re.compile(r"(?:^    |^|`)(?:\.venv/bin/)?(holdfast [a-z][^`\n]*)", re.MULTILINE)
INSTALL = re.compile(r"((?:uv )?(?:pip|pipx|tool)? ?(?:install|add) [^`\n|&;]*)")
SUMMARY = "## Completed Work\n- Pages 1 to 20 were read.\n## Pending Work\n- [ ] the other pages"


class Block(NamedTuple):
    """A fenced block of a page, and the comment above it."""

    note: str
    text: str
    line: int


def blocks(page: Path, kind: str = "python") -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found["kind"] == kind:
            line = text.count("\n", 0, found.start("text")) + 1
            yield Block(found["note"] or "", found["text"], line)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


RUN = {page_name(page): page for page in PAGES if any(not block.note for block in blocks(page))}


async def run(code: str, names: dict[str, Any], where: str) -> None:
    """Runs a block that may use `await` outside of a function, as a reader's editor shows it."""
    done = eval(compile(code, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.isawaitable(done):
        await done


class Client:
    """The providers' clients, as far as the pages use them: refuses what the provider would refuse, answers at once."""

    def __init__(self) -> None:
        self.messages = SimpleNamespace(create=self.create_message)
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create_completion))

    def create_message(self, *, model: str, max_tokens: int, messages: list[Any]) -> Any:
        assert check(messages, "anthropic", ready=True) == []
        return {"role": "assistant", "content": "Done."}

    async def create_completion(self, *, model: str, messages: list[Any], **more: Any) -> Any:
        assert check(messages, "openai-chat", ready=True) == []
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}
        usage = {"prompt_tokens": 900, "completion_tokens": 5, "total_tokens": 905}
        made = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
            "usage": usage,
        }
        return ChatCompletion.model_validate(made)


@cache
def harbor() -> list[Any]:
    return list(read_transcript(example_path("harbor")).messages)


@cache
def compacted() -> CompactionResult:
    return compact(harbor(), budget=100_000)


async def stand_ins(sessions: SessionService, page: str) -> dict[str, Any]:
    """Returns what a page takes for granted: what its reader has."""
    messages = [*harbor(), {"role": "user", "content": "Thank you. What is open?"}]
    session = await sessions.create(format="anthropic")
    await sessions.append(session.id, messages[:40])
    await sessions.append(session.id, {"role": "user", "content": "Never touch the production database."})
    given: dict[str, Any] = {
        "messages": messages,
        "message": {"role": "user", "content": "And now?"},
        "longer": [*messages, {"role": "assistant", "content": "Nothing."}],
        "result": compacted(),
        "sessions": sessions,
        "session": session,
        "session_id": session.id,
        "old": session,
        "model": lambda prompt: SUMMARY,
        "client": Client(),
        "PROMPT": "You look after berths.",
        "TOOLS": encode_tools("anthropic", [Tool("look", "Look at a berth.", {"type": "object"})]),
        "MODEL": "gpt-5-mini",
        "tools": [],
        "prompt": "You look after berths.",
        "edited_by_a_person": str,
        "read_log": lambda number: f"Log {number}: calm.",
    }
    if page == "docs/library.md":
        await sessions.append(session.id, messages[41:])
        await sessions.compact(session.id, budget=20_000)
        given["call"] = {"type": "tool_use", "id": "c1", "name": "recall_search", "input": {"query": "tidebook"}}
    if page == "docs/sessions.md":
        await anyio.Path("session.jsonl").write_bytes(example_path("support").read_bytes())
    if page == "docs/web.md":
        async with SessionService(SQLiteStore("agent.db")) as stored:
            made = await stored.create(format="anthropic")
            await stored.append(made.id, messages[:120])
            await stored.compact(made.id, budget=12_000)
            given["session_id"], events = made.id, await stored.events(made.id)
            given["event_id"], given["compaction_id"] = events[0].id, events[-1].id
    return given


@pytest.mark.anyio
@pytest.mark.parametrize("page", list(RUN))
async def test_programs_of_the_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with ProviderServer(SUMMARY) as server:
        for name, url in (("OPENAI", server.openai_url), ("ANTHROPIC", server.anthropic_url)):
            monkeypatch.setenv(f"{name}_BASE_URL", url)
            monkeypatch.setenv(f"{name}_API_KEY", "k")
        async with SessionService(MemoryStore()) as sessions:
            names = await stand_ins(sessions, page)
            for block in blocks(RUN[page]):
                if not block.note:
                    await run(block.text, names, f"{page}:{block.line}")
                    names |= {"sessions": sessions, "session": names["old"]}  # a block may have closed its own
        assert server.refused == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_block_that_does_not_run_here_says_why(page: Path) -> None:
    for block in blocks(page):
        where = f"{page_name(page)}:{block.line}"
        if elsewhere := ELSEWHERE.search(block.note):
            assert page.name in (ROOT / elsewhere[1]).read_text(encoding="utf-8"), where
        else:
            assert not block.note or FILE.fullmatch(block.note) or block.note.startswith("not run: "), where


def test_programs_of_the_quickstart_print_what_the_page_quotes(tmp_path: Path) -> None:
    """Each in a process of its own, as a reader starts it: three of them at once."""
    page = ROOT / "docs" / "quickstart.md"
    quoted = [block.text for block in blocks(page, "text") if block.note == "prints"]
    programs = [block for block in blocks(page) if FILE.fullmatch(block.note)]
    running = []
    for program in programs:
        (tmp_path / program.note).write_text(program.text, encoding="utf-8")
        command = [sys.executable, program.note]
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True))
    assert [process.communicate(timeout=100)[0] for process in running] == quoted
    assert len(quoted) == 3


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found in COMMAND.finditer(page.read_text(encoding="utf-8").replace("\\\n", " ")):
            yield page_name(page), found[1]


def test_every_command_on_the_pages_exists_with_its_options() -> None:
    context = click.Context(main)
    wrong, seen = [], set()
    for page, line in commands():
        _, name, *rest = line.split()
        command = main.get_command(context, name.strip(".,;:)"))
        if command is None:
            wrong.append((page, line))
            continue
        seen.add(name)
        options = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        used = {re.split(r"[=\[]", word)[0] for word in rest if re.match(r"--[a-z]", word)}
        if isinstance(command, click.Group):
            options |= {o for sub in command.commands.values() for parameter in sub.params for o in parameter.opts}
        wrong += [(page, line, option) for option in used - options]
    assert wrong == []
    assert len(seen) > 15


def test_install_lines_work_where_the_reader_is() -> None:
    """Until it is published: from the clone, with extras that exist. The package's name is for the day after."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    wrong = []
    for page in PAGES:
        before = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            before = before[-200:] + line
            for installed in INSTALL.findall(line) if "install" in line or "add" in line else ():
                named = re.findall(r"'(?:\.|PATH/TO/holdfast|holdfast-context)\[([\w,-]+)\]'", installed)
                wrong += [(page.name, line) for some in named if not set(some.split(",")) <= extras]
            if re.search(r"install [^\n`]*'?holdfast-context", line) and "once it is published" not in before.lower():
                wrong.append((page.name, line))
            if re.search(r"install [^\n`]*'holdfast\[", line):
                wrong.append((page.name, line))
    assert wrong == []
