"""Summary progress on a terminal, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from cli_models import SUMMARY, Serve, at

from holdfast.cli.compaction import SummaryProgress, abort_on_sigint
from holdfast.models.calls import Notice
from providers import ProviderServer, RateLimited, Say, Stall

HOLDFAST = [sys.executable, "-m", "holdfast"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_summary_progress_line() -> None:
    clock = Clock()
    writing = SummaryProgress("openai:gpt-4o", clock)
    clock.now = 1.0
    assert writing.line() == "compacting · 1 s"
    writing(Notice("calling", "summary", 1))
    assert writing.line() == "requesting the summary · 1 s · openai:gpt-4o"
    writing(Notice("delta", "summary", 1, "x" * 1_204, 1_204))
    clock.now = 5.0
    assert writing.line() == "writing the summary · 1,204 characters · 5 s · openai:gpt-4o"
    writing(Notice("failed", "summary", 1, "transport: too many", 0))
    writing(Notice("waiting", "summary", 1, "too many (HTTP 429)\nreally", seconds=3.0))
    clock.now = 6.0
    assert writing.line() == "waiting 2 s, then attempt 2: too many (HTTP 429)"
    writing(Notice("calling", "summary", 1, attempt=2))
    assert writing.line() == "requesting the summary · attempt 2 · 6 s · openai:gpt-4o"
    writing(Notice("answered", "summary", 1, characters=900))
    assert writing.line() == "reading the summary · 6 s"
    writing(Notice("calling", "rollup", 2))
    writing(Notice("delta", "rollup", 2, "y" * 100, 100))
    assert writing.line() == "writing a shorter summary · call 2 · 1,000 characters · 6 s · openai:gpt-4o"


def test_abort_on_sigint_outside_main_thread_is_inactive() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def elsewhere() -> None:
        with abort_on_sigint() as abort:
            seen.append((abort.aborted, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
    with abort_on_sigint():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def start(file: Path, server: ProviderServer, *options: Any, **streams: Any) -> subprocess.Popen[bytes]:
    command = [*HOLDFAST, "compact", str(file), "--now", "--summarizer", at(server), *map(str, options)]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm-256color"}
    return subprocess.Popen(command, env=environment, **streams)


def writes(server: ProviderServer) -> None:
    """Waits until a reply is streaming."""
    until = time.monotonic() + 60
    while not any(request.sent for request in server.requests) and time.monotonic() < until:
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("options", [(), ("--json",), ("--preset", "pi")])
def test_ctrl_c_aborts_summary_and_changes_nothing(
    options: tuple[str, ...], chat: Path, serve: Serve, tmp_path: Path
) -> None:
    server, out = serve(Stall(after=2)), tmp_path / "out.json"
    out.write_text("old")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(chat, server, "--force", "-o", out, *options, **pipes) as process:
        writes(server)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (output, errors) == (b"", b"holdfast: aborted: nothing was changed.\n")
    assert out.read_text() == "old"
    assert server.requests[-1].disconnected.wait(30)


def test_summary_progress_is_shown_on_terminal(chat: Path, serve: Serve, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    seen = threading.Event()
    server = serve([RateLimited(3), Say(SUMMARY, pieces=10, held=seen)])
    main, other = pty.openpty()
    with start(chat, server, "--json", "-o", tmp_path / "out.json", stdout=subprocess.PIPE, stderr=other) as process:
        os.close(other)
        shown = b""
        try:
            while piece := os.read(main, 65536):
                shown += piece
                if b"characters" in shown:
                    seen.set()
        except OSError:
            pass  # the other end is closed
        os.close(main)
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait(60) == 0
    assert output.startswith(b'{"type":"compaction"') and output.count(b"\n") == 1
    for words in (" s, then attempt 2: Rate limit reached.", "writing the summary", "characters"):
        assert words in shown.decode()


def test_summary_progress_is_silent_in_a_pipe(chat: Path, serve: Serve) -> None:
    server = serve(Say(SUMMARY, pieces=4, delay=0.4))
    with start(chat, server, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")
    assert b"\x1b" not in output and b"written by" in output
