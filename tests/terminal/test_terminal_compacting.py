"""Compaction in the loop, as a person sees it."""

from __future__ import annotations

import re
from collections.abc import Callable

from harbor_model import SUMMARY, HarborModel
from talks import Talk

from providers import Call, ProviderServer, Say, Stall, Status

TIDES = "The tide flows in the morning and ebbs in the evening, as it says in the table. " * 45


def gauge(chat: Talk) -> str:
    found = re.search(r"([~?]?)[\d.]+k?/[\d.]+k? \d+ %", chat.footer)
    assert found, chat.footer
    return {"": "known", "~": "estimated", "?": "unknown"}[found[1]]


def test_a_full_window_is_compacted_in_the_loop(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer]
) -> None:
    """P2, P14, P15: progress, a divider with before and after, what is typed meanwhile waits, the gauge is honest."""
    model = HarborModel({"first": Say(f"{TIDES}First."), "second": Say(f"{TIDES}Second.")}, Say(SUMMARY, delay=0.3))
    chat = talk().start(f"{serve(model).openai_url}#m", "--window", "3000", size=(100, 40))
    assert gauge(chat) == "estimated"
    chat.says("Tell me the first tide.").sees("First.")
    chat.rests()
    assert gauge(chat) == "known"
    chat.says("Tell me the second tide.").sees("compacting", "the window is nearly full", "characters", "Esc stops it")
    chat.says("A word meanwhile.").sees("queued: A word meanwhile.", "1 queued")
    shown = chat.sees("── compacted", "Aye: A word meanwhile.")
    divider = next(line for line in shown.splitlines() if "── compacted" in line)
    assert re.search(r"compacted [\d.]+k → [\d.]+k? tokens · \d+ % less · round 1 ─+$", divider)
    assert re.search(r"\d messages archived, \d kept · summary by .* · [\d.]+ s", shown)
    assert "repeated compactions make a model less accurate" in " ".join(shown.split())
    chat.rests()
    assert gauge(chat) == "known" and "A word meanwhile." in model.heard[-1]
    chat.press("C-o").sees("▾ summary", "│ ")
    assert [event.kind for event in chat.events()].count("compaction") >= 1


def test_a_compaction_can_be_stopped_and_can_fail_and_nothing_changes(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer]
) -> None:
    """P8, P9, P14."""
    model = HarborModel({"first": Say(f"{TIDES}First."), "second": Say(f"{TIDES}Second.")}, Stall(after=2))
    chat = talk().start(f"{serve(model).openai_url}#m", "--window", "100000", "--preset", "claude_code", size=(80, 30))
    for prompt, end in (("first", "First."), ("second", "Second.")):
        chat.says(f"Tell me the {prompt} tide.").sees(end)
        chat.rests()
    before = chat.said()
    chat.says("/compact keep the tides").sees("compacting", "writing the summary", "characters")
    chat.says("Said while it was compacted.").sees("queued: Said while it was compacted.")
    chat.press("Escape").sees("The compaction was stopped. Nothing has changed.")
    chat.sees("Aye: Said while it was compacted.")
    chat.rests()
    assert chat.said()[: len(before)] == before
    model.summary = Status(400, "The berth is closed.")
    chat.says("/compact").sees("The compaction failed", "The berth is closed.", "Nothing has changed")
    assert not any(event.kind == "compaction" for event in chat.events())
    model.summary = SUMMARY
    chat.says("/compact").sees("── compacted")
    chat.rests()
    assert gauge(chat) == "unknown"
    chat.says("Go on.").sees("Aye: Go on.")
    chat.rests()
    assert gauge(chat) == "known"


def test_input_during_a_run_steers_it_and_a_compaction_by_hand_interrupts_it(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer]
) -> None:
    """P1, P14, P22: the agent is stopped for the compaction, and goes on afterwards because it was not done."""
    wait = Call("run_command", {"command": "until [ -e go ]; do sleep 0.05; done; echo gone"})
    model = HarborModel({"first": Say(f"{TIDES}First."), "wait": Say("I wait.", calls=(wait,))})
    chat = talk().start(f"{serve(model).openai_url}#m", "--window", "5000", "--yes", "--no-auto-compact", size=(80, 40))
    assert "auto-compact off" in chat.footer
    chat.says("Tell me the first tide.").sees("First.")
    chat.rests()
    chat.says("Please wait for the boat.").sees("◌ run_command until", "running")
    chat.says("Mind the pier.").sees("after this step: Mind the pier.", "1 queued")
    (chat.folder / "go").touch()
    chat.sees("✓ run_command until", "❯ Mind the pier.", "Aye: Mind the pier.")
    chat.rests()
    (chat.folder / "go").unlink()
    model.summary = Stall(after=1)
    chat.says("Please wait once more.").sees("· running")
    chat.says("Mind the buoy.").sees("after this step: Mind the buoy.")
    chat.says("/compact").sees("compacting", "characters")
    chat.press("Escape").sees("The compaction was stopped.", "Stopped. What was said", "❯ Mind the buoy. ──")
    chat.press("C-c").rests()
    model.summary = SUMMARY
    chat.says("Please wait again.").sees("· running")
    chat.says("/compact").sees("· stopped", "── compacted", "The agent goes on.", "The tool is done.")
    chat.rests()
