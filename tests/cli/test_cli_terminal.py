"""A sign of life: on a terminal, and only when something takes its time."""

from __future__ import annotations

import io
import sys
import time

import pytest

from holdfast.cli import terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Called inside a test: pytest sets its own stderr between a fixture and the test."""
    made = Screen()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_long_work_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(terminal, "PATIENCE", 0.01)
    with terminal.working("counting"):
        until = time.monotonic() + 10
        while "counting" not in shown.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "counting …" in shown.getvalue()


def test_work_that_changes_is_told_as_it_is_now_and_never_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(terminal, "PATIENCE", 0.01)
    said = ["first"]
    with terminal.working(lambda: f"[bold]{said[-1]}[/] at the mast"):
        for word in ("first", "second"):
            said.append(word)
            until = time.monotonic() + 10
            while f"[bold]{word}[/] at the mast …" not in shown.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
    assert "[bold]first[/]" in shown.getvalue() and "[bold]second[/]" in shown.getvalue()


def test_short_work_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    with terminal.working("counting"):
        pass
    assert shown.getvalue() == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    with terminal.working("counting"):
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def test_it_ends_with_the_block_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    with pytest.raises(KeyboardInterrupt), terminal.working("counting"):
        time.sleep(0.05)
        raise KeyboardInterrupt
    seen = shown.getvalue()
    time.sleep(0.2)
    assert shown.getvalue() == seen
