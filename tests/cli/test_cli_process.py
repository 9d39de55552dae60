"""Real processes, pipes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_files import conversation, write_json

HOLDFAST = [sys.executable, "-m", "holdfast"]


def start(*args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*HOLDFAST, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **options)


def test_pipe_gets_plain_text(chat: Path) -> None:
    done = start("compact", chat, "--budget", "20k")
    assert done.returncode == 0 and done.stderr == ""
    assert "\x1b" not in done.stdout and "Compacted:" in done.stdout


def test_compact_through_two_pipes(chat: Path) -> None:
    done = start("compact", "-", "--budget", "20k", "-o", "-", input=chat.read_text())
    assert done.returncode == 0
    assert json.loads(done.stdout)[-1] == json.loads(chat.read_text())[-1]
    assert "standard input" in done.stderr and "\x1b" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs bash")
def test_compact_reads_process_substitution(chat: Path) -> None:
    script = f"exec '{sys.executable}' -m holdfast compact <(cat '{chat}') --budget 20k --json"
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["outcome"] == "compacted"


def test_process_bad_input_is_one_line(tmp_path: Path) -> None:
    done = start("compact", tmp_path / "missing.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("holdfast: There is no file ") and done.stderr.count("\n") == 1


def test_process_bad_stdin_is_named() -> None:
    done = start("inspect", "-", input="not json")
    assert done.returncode == 2
    assert done.stderr.startswith("holdfast: standard input is not JSON")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("compact", "CHAT", "-o", "-"), 0), (("inspect", "CHAT"), 0), (("--help",), 0), (("inspect", "nowhere"), 2)],
)
def test_closed_pipe_changes_no_exit_code(chat: Path, arguments: tuple[str, ...], code: int) -> None:
    """As with `| head`."""
    command = [*HOLDFAST, *(str(chat) if word == "CHAT" else word for word in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == code
    assert "Traceback" not in errors and "BrokenPipe" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_exits_130(tmp_path: Path) -> None:
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    with subprocess.Popen([*HOLDFAST, "compact", str(fifo)], stderr=subprocess.PIPE, text=True) as process:
        with open(fifo, "wb"):  # opens once the other side reads
            process.send_signal(signal.SIGINT)
            code = process.wait(30)
        assert process.stderr is not None
        assert (code, process.stderr.read().strip()) == (130, "")


def test_ascii_terminal_gets_no_traceback(chat: Path) -> None:
    done = start("compact", chat, "--budget", "20k", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and done.stdout.isascii() and "####" in done.stdout


def test_version_and_help() -> None:
    assert start("--version").stdout.startswith("holdfast 0.")
    assert "compact" in start("--help").stdout
    nothing = start()
    assert nothing.returncode == 2 and "Usage: holdfast" in nothing.stdout


def test_completion_in_a_shell() -> None:
    assert "_HOLDFAST_COMPLETE=bash_complete" in start("completion", "bash").stdout
    asked = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "holdfast comp", "COMP_CWORD": "1"}
    assert "plain,compact" in start(env={**os.environ, **asked}).stdout.splitlines()


def test_cli_import_does_not_load_rich() -> None:
    script = "import sys, holdfast.cli; print(*(m for m in sys.modules if m.split('.')[0] in ('rich', 'splintr')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == ""


def test_colours_only_on_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    file = write_json(tmp_path / "chat.json", conversation("openai-chat", 80))

    def on_a_terminal(**env: str) -> str:
        main, other = pty.openpty()
        command = [*HOLDFAST, "compact", str(file), "--budget", "2k"]
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | env
        with subprocess.Popen(command, stdout=other, stderr=other, env=environment) as process:
            os.close(other)
            shown = b""
            try:
                while piece := os.read(main, 65536):
                    shown += piece
            except OSError:
                pass  # the other end is closed
            os.close(main)
            assert process.wait(60) == 0
        return shown.decode()

    assert "\x1b[" in on_a_terminal(TERM="xterm-256color")
    assert "\x1b" not in on_a_terminal(TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b[3" not in on_a_terminal(TERM="dumb")
