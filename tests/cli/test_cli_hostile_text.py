"""No command prints a raw control, escape or direction character, whatever a session, a path or a name contains."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import Run

import holdfast.cli
from holdfast import SessionService
from holdfast.stores import open_store

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\x7f\u202eevil\u2066\u200b\u2028\x85\U000e0041"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e0fff]")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / f"s {EVIL.replace(chr(0x9B), '')}.db"

    async def fill() -> None:
        async with SessionService(open_store(path)) as service:
            await service.create(id=f"id {EVIL}", owner=f"ann {EVIL}", model=f"m {EVIL}", system=f"rule {EVIL}")
            for n in range(12):
                call = {"id": f"c{n}{EVIL}", "type": "function", "function": {"name": f"run{EVIL}", "arguments": "{}"}}
                await service.append(
                    f"id {EVIL}", {"role": "user", "content": f"please {EVIL} number {n} " + "x " * 300}
                )
                await service.append(f"id {EVIL}", {"role": "assistant", "content": None, "tool_calls": [call]})
                result = {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": f"Error: {EVIL} /etc/{EVIL}.py " + "y " * 300,
                }
                await service.append(f"id {EVIL}", result)
            await service.compact(f"id {EVIL}", budget=1_500)
            await service.append(f"id {EVIL}", {"role": "assistant", "content": f"done {EVIL}"})

    asyncio.run(fill())
    return path


def test_commands_print_no_control_characters(store: Path, run: Run, tmp_path: Path) -> None:
    session = f"id {EVIL}"
    exported = tmp_path / f"out{EVIL.replace(chr(0x9B), '')}.jsonl"
    commands = [
        ("inspect", store, "--session", session),
        ("inspect", store),
        ("compact", store, "--budget", "1k"),
        ("search", "please", store),
        ("search", EVIL, store),
        ("read", "1", store, "--session", session),
        ("undo", store, "--session", session),
        ("fork", store, "--session", session, "--id", f"copy {EVIL}"),
        ("presets",),
        ("verify", store),
        ("doctor", "--store", store),
        ("config", "--store", store),
        ("export", session, "--store", store, "-o", exported),
        ("import", exported, "--store", tmp_path / "copy.db"),
        ("import", exported, "--store", tmp_path / "copy.db"),
    ]
    printed = worked = 0
    for command in commands:
        for extra in ((), ("--json",)):
            result = run(*command, *extra)
            worked += result.exit_code in (0, 1)
            for text in (result.stdout, result.stderr):
                assert not HIDDEN.search(text), (command, extra, HIDDEN.findall(text), text[:2000])
                printed += len(text)
            if extra and result.stdout:
                json.loads(result.stdout)
    assert printed > 5_000 and worked > 18
    assert "\u202eevil" in exported.read_text(encoding="utf-8"), "a file stays exact"
    for command in (
        ("inspect", store, "--session", f"none {EVIL}"),
        ("export", f"none {EVIL}", "--store", store),
        ("compact", tmp_path / f"none {EVIL}"),
        ("read", f"none {EVIL}", store),
        ("verify", f"none {EVIL}"),
        (f"none {EVIL}",),
        ("compact", store, "--preset", f"none {EVIL}"),
        ("compact", store, "--summarizer", f"none{EVIL}:x"),
    ):
        result = run(*command)
        assert result.exit_code != 0
        assert not HIDDEN.search(result.stdout + result.stderr.removesuffix("\n")), (command, result.stderr)


def test_export_to_a_terminal_is_escaped_and_to_a_pipe_exact(store: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "export", f"id {EVIL}", "--store", str(store)]
    piped = subprocess.run(command, check=True, capture_output=True).stdout
    assert "\u202eevil" in piped.decode()
    screen, terminal = pty.openpty()
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                data = os.read(screen, 65_536)
            except OSError:
                break
            if not data:
                break
            shown += data
    os.close(screen)
    assert process.returncode == 0
    text = shown.decode().replace("\r\n", "\n")
    assert not HIDDEN.search(text)
    assert "evil" in text and list(map(json.loads, text.splitlines())) == list(map(json.loads, piped.splitlines()))


def test_every_print_goes_through_the_escaping_functions() -> None:
    folder = Path(holdfast.cli.__file__).parent
    direct = {
        path.name: path.read_text(encoding="utf-8").count("click.echo(")
        for path in folder.glob("*.py")
        if "click.echo(" in path.read_text(encoding="utf-8")
    }
    assert direct == {"__init__.py": 2, "chat.py": 1, "output.py": 2}, "help, completions, and an answer made safe"
