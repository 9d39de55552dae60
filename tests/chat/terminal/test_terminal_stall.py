"""A screen that hangs: it is interrupted after some seconds, and SIGTERM and SIGHUP work at any time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from terminal_harness import TerminalChat
from terminal_screens import process_ended

from providers import ProviderServer, Stall

LOOP = """
import sys, time
from holdfast.chat.terminal import app, reply_entries, watchdog
watchdog.STALL_SECONDS = 2.0
def hang(*given):
    while {condition}:
        {step}
draw = reply_entries.ReplyEntry.draw
def draw_or_hang(entry, *given):
    return hang() if "hang" in "".join(entry._stream._pieces) else draw(entry, *given)
reply_entries.ReplyEntry.draw = draw_or_hang
app.ChatTerminal.action_unfold_all = hang
from holdfast.cli import main
sys.argv[0] = "holdfast"
main()
"""


def hanging(step: str = "pass", condition: str = "True") -> dict[str, tuple[str, str]]:
    """The program, with a reply that is drawn for ever, and Ctrl-O that does not return."""
    return {"program": ("-c", LOOP.format(step=step, condition=condition))}


def test_text_that_cannot_be_drawn_is_replaced_by_a_note(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """The chat goes on, and the session can be opened again."""
    server = serve(lambda request: "Do not hang." if len(server.requests) == 1 else "All is well.")
    chat = terminal().start(f"{server.openai_url}#m", **hanging())
    chat.send("Draw this.").wait_for_text("This cannot be drawn: the screen did not respond for 2 s: it hung in hang")
    chat.wait_idle()
    chat.send("And now?").wait_for_text("All is well.")
    assert chat.messages()[1] == ("assistant", "Do not hang.")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "step", ["pass", "time.sleep(100)", "__import__('re').match('(a+)+b', 'a' * 40)"], ids=["loop", "wait", "regex"]
)
def test_stall_outside_of_drawing_ends_the_program_with_its_place(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer], step: str
) -> None:
    """The streamed part of a reply and the typed line are kept, and the terminal is restored."""
    server = serve(Stall(after=3, text="This story of the sea never ends."))
    chat = terminal().start(f"{server.openai_url}#m", **hanging(step))
    chat.send("A story.").wait_for_text("This story of")
    chat.screen.type("half a line")
    chat.wait_for_text("half a line")
    chat.press("C-o")
    shown = chat.wait_for_text("holdfast: the screen did not respond for 2 s: it hung in", "To continue this session:")
    assert "Traceback" not in shown and process_ended(chat.screen.pid)
    assert chat.messages()[1][1].startswith("This story of")
    again = terminal().start(f"{server.openai_url}#m", "--continue")
    again.press("Up", "Up").wait_for_text("half a line")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_program_that_hangs(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer], number: int
) -> None:
    chat = terminal().start(f"{serve().openai_url}#m", **hanging())
    chat.press("C-o")
    os.kill(chat.screen.pid, number)
    assert process_ended(chat.screen.pid)


def test_stopped_process_has_not_stalled(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    chat = terminal().start(f"{serve().openai_url}#m", **hanging())
    os.kill(chat.screen.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(chat.screen.pid, signal.SIGCONT)
    chat.send("Are you there?").wait_for_text("a reply")
