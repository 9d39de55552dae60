"""The progress line: only on a terminal, and only for long work."""

from __future__ import annotations

import io
import sys
import time

import pytest

from holdfast.cli import console


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Must be called inside a test: pytest replaces stderr between a fixture and the test."""
    made = Screen()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


def wait_for_text(shown: Screen, text: str) -> None:
    until = time.monotonic() + 30
    while text not in shown.getvalue() and time.monotonic() < until:
        time.sleep(0.01)


def test_show_progress_long_work_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(console, "SPINNER_DELAY", 0.01)
    with console.show_progress("counting"):
        wait_for_text(shown, "counting …")
    assert "counting …" in shown.getvalue()


def test_show_progress_updates_text_without_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(console, "SPINNER_DELAY", 0.01)
    labels = ["first"]
    with console.show_progress(lambda: f"[bold]{labels[-1]}[/] at the mast"):
        for word in ("first", "second"):
            labels.append(word)
            wait_for_text(shown, f"[bold]{word}[/] at the mast …")
    assert "[bold]first[/]" in shown.getvalue() and "[bold]second[/]" in shown.getvalue()


def test_show_progress_short_work_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(console, "SPINNER_DELAY", 60.0)
    with console.show_progress("counting"):
        pass
    assert shown.getvalue() == ""


def test_show_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(console, "SPINNER_DELAY", 0.0)
    with console.show_progress("counting"):
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def test_show_progress_stops_on_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    monkeypatch.setattr(console, "SPINNER_DELAY", 0.0)
    with pytest.raises(KeyboardInterrupt), console.show_progress("counting"):
        wait_for_text(shown, "counting …")
        raise KeyboardInterrupt
    seen = shown.getvalue()
    time.sleep(0.2)
    assert shown.getvalue() == seen
