"""Compaction in the loop, as shown on the screen."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from harbor_model import SUMMARY, HarborModel
from terminal_harness import TerminalChat

from providers import Call, ProviderServer, Say, Stall, Status

TIDES = "The tide flows in the morning and ebbs in the evening, as it says in the table. " * 45


def gauge(chat: TerminalChat) -> str:
    found = re.search(r"([~?]?)[\d.]+k?/[\d.]+k? \d+ %", chat.footer)
    assert found, chat.footer
    return {"": "known", "~": "estimated", "?": "unknown"}[found[1]]


def test_full_window_is_compacted_automatically(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """P2, P14, P15: progress, a divider with tokens before and after, queued input, and the certainty of the gauge."""
    shown_all = threading.Event()
    model = HarborModel(
        {"first": Say(f"{TIDES}First."), "second": Say(f"{TIDES}Second.")}, Say(SUMMARY, held=shown_all)
    )
    chat = terminal().start(f"{serve(model).openai_url}#m", "--window", "3000", size=(100, 40))
    assert gauge(chat) == "estimated"
    chat.send("Tell me the first tide.").wait_for_text("First.")
    chat.wait_idle()
    assert gauge(chat) == "known"
    chat.send("Tell me the second tide.").wait_for_text(
        "compacting", "the window is nearly full", "characters", "Esc stops it"
    )
    chat.send("A word meanwhile.").wait_for_text("queued: A word meanwhile.", "1 queued")
    shown_all.set()
    shown = chat.wait_for_text("── compacted", "Aye: A word meanwhile.")
    divider = next(line for line in shown.splitlines() if "── compacted" in line)
    assert re.search(r"compacted [\d.]+k → [\d.]+k? tokens · \d+ % less · round 1 ─+$", divider)
    assert re.search(r"\d messages archived \(Ctrl-G\), \d kept · summary by .* · [\d.]+ s", shown)
    assert "repeated compactions make a model less accurate" in " ".join(shown.split())
    chat.wait_idle()
    assert gauge(chat) == "known" and "A word meanwhile." in model.prompts[-1]
    chat.press("C-o").wait_for_text("▾ summary", "│ ")
    assert [event.kind for event in chat.events()].count("compaction") >= 1


def test_compaction_stopped_or_failed_changes_nothing(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """P8, P9, P14."""
    model = HarborModel({"first": Say(f"{TIDES}First."), "second": Say(f"{TIDES}Second.")}, Stall(after=2))
    chat = terminal().start(
        f"{serve(model).openai_url}#m", "--window", "100000", "--preset", "claude_code", size=(80, 30)
    )
    for prompt, end in (("first", "First."), ("second", "Second.")):
        chat.send(f"Tell me the {prompt} tide.").wait_for_text(end)
        chat.wait_idle()
    before = chat.messages()
    chat.send("/compact keep the tides").wait_for_text("compacting", "writing the summary", "characters")
    chat.send("Sent during the compaction.").wait_for_text("queued: Sent during the compaction.")
    chat.press("Escape").wait_for_text("The compaction was stopped. Nothing has changed.")
    chat.wait_for_text("Aye: Sent during the compaction.")
    chat.wait_idle()
    assert chat.messages()[: len(before)] == before
    model.summary = Status(400, "The berth is closed.")
    chat.send("/compact").wait_for_text("The compaction failed", "The berth is closed.", "Nothing has changed")
    assert not any(event.kind == "compaction" for event in chat.events())
    model.summary = SUMMARY
    shown = chat.send("/compact").wait_for_text("── compacted", "an earlier attempt failed:", "The berth is closed.")
    assert "The compaction failed" not in shown and "summary_failed" not in shown
    chat.wait_idle()
    assert gauge(chat) == "unknown"
    chat.send("Go on.").wait_for_text("Aye: Go on.")
    chat.wait_idle()
    assert gauge(chat) == "known"


def test_input_steers_run_and_compact_command_interrupts_it(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """P1, P14, P22: the agent is aborted for the compaction and continues afterwards because it was not done."""
    wait = Call("run_command", {"command": "until [ -e go ]; do sleep 0.05; done; echo gone"})
    model = HarborModel({"first": Say(f"{TIDES}First."), "wait": Say("I wait.", calls=(wait,))})
    chat = terminal().start(
        f"{serve(model).openai_url}#m", "--window", "5000", "--yes", "--no-auto-compact", size=(80, 40)
    )
    assert "auto-compact off" in chat.footer
    chat.send("Tell me the first tide.").wait_for_text("First.")
    chat.wait_idle()
    chat.send("Please wait for the boat.").wait_for_text("◌ run_command until", "running")
    chat.send("Mind the pier.").wait_for_text("after this step: Mind the pier.", "1 queued")
    (chat.folder / "go").touch()
    chat.wait_for_text("✓ run_command until", "❯ Mind the pier.", "Aye: Mind the pier.")
    chat.wait_idle()
    (chat.folder / "go").unlink()
    model.summary = Stall(after=1)
    chat.send("Please wait once more.").wait_for_text("· running")
    chat.send("Mind the buoy.").wait_for_text("after this step: Mind the buoy.")
    chat.send("/compact").wait_for_text("compacting", "characters")
    chat.press("Escape").wait_for_text("The compaction was stopped.", "Stopped. Everything", "❯ Mind the buoy. ──")
    chat.press("C-c").wait_idle()
    model.summary = SUMMARY
    chat.send("Please wait again.").wait_for_text("· running")
    chat.send("/compact").wait_for_text("· stopped", "── compacted", "The agent continues.", "The tool is done.")
    chat.wait_idle()
