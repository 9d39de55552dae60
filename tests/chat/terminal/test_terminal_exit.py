"""Stopping and quitting in every state, and terminals that close unexpectedly."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest
from harbor_model import SUMMARY, HarborModel
from terminal_harness import TerminalChat
from terminal_screens import SCREEN_TYPES, TIMEOUT, process_ended, wait_until

from holdfast.messages import INTERRUPTED_MARK
from providers import Answer, Call, Cut, ProviderServer, RateLimited, Request, Say, Stall, Status

ENDLESS = Stall(after=3, text="This story of the sea never comes to its end.")


def test_ctrl_c_stops_clears_and_pressed_twice_quits(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """While idle, typing, streaming, awaiting approval, running a tool, and compacting (P8)."""
    wait = Call("run_command", {"command": "echo begun > begun; sleep 600"})
    model = HarborModel({"story": ENDLESS, "ask": Say("I ask.", calls=(wait,))})
    chat = terminal().start(f"{serve(model).openai_url}#m", "--preset", "claude_code")
    chat.screen.type("half a thought")
    chat.wait_for_text("half a thought")
    chat.press("C-c").wait_idle()
    chat.send("Tell me a story.").wait_for_text("This story of")
    chat.press("C-c").wait_for_text("(stopped)", "Stopped. Everything so far is kept.")
    chat.wait_idle()
    chat.send("Now ask me.").wait_for_text("May the agent use run_command?")
    chat.press("C-c").wait_for_text("✗ run_command echo begun > begun; sleep 600 · stopped")
    chat.wait_idle()
    assert not (chat.folder / "begun").exists()
    chat.send("Please ask again.").wait_for_text("May the agent use run_command?", "y yes")
    chat.press("y").wait_for_text("◌ run_command")
    chat.wait_without_text("May the agent")
    chat.press("C-c").wait_without_text("◌ run_command")
    chat.wait_idle()
    model.summary = Stall(after=1)
    chat.send("/compact").wait_for_text("compacting", "characters")
    chat.press("C-c").wait_for_text("The compaction was stopped. Nothing has changed.")
    chat.wait_idle()
    model.summary = SUMMARY
    chat.send("Are you there?").wait_for_text("Aye: Are you there?")
    chat.wait_idle()
    chat.press("C-c").wait_for_text("Ctrl-C again quits")
    chat.quit("C-c")
    messages = chat.messages()
    assert ("assistant", f"This story of the\n\n{INTERRUPTED_MARK}") in messages
    assert messages[-1] == ("assistant", "Aye: Are you there?")


@pytest.mark.parametrize("kind", SCREEN_TYPES)
def test_closed_terminal_ends_program_and_stores_session(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer], kind: str
) -> None:
    server = serve(HarborModel({"story": ENDLESS}))
    chat = terminal(SCREEN_TYPES[kind]()).start(f"{server.openai_url}#m")
    chat.send("Tell me a story.").wait_for_text("This story of")
    chat.screen.close_window()
    assert process_ended(chat.screen.pid)
    assert server.requests[-1].disconnected.wait(TIMEOUT)
    assert [role for role, _ in chat.messages()] == ["user", "assistant"]


def test_session_continues_after_quit_or_kill_during_reply(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """H1: after quitting, the partial reply is kept; after a kill, Enter alone answers the unanswered prompt."""
    model = HarborModel({"story": ENDLESS})
    server = serve(model)
    first = terminal().start(f"{server.openai_url}#m")
    first.send("Tell me a story.").wait_for_text("This story of")
    session = first.quit("C-d")
    partial = ("assistant", f"This story of the\n\n{INTERRUPTED_MARK}")
    assert first.messages() == [("user", "Tell me a story."), partial]
    assert server.requests[-1].disconnected.wait(TIMEOUT)
    second = terminal().start(f"{server.openai_url}#m", "--session", session)
    second.wait_for_text("Tell me a story.", "last used", "❯ Tell me a story.", "This story of")
    second.press("Up").wait_for_text("❯ Tell me a story. ──")
    second.press("C-c").wait_idle()
    second.send("Another story!").wait_for_text("❯ Another story!", "writing")
    second.kill()
    assert second.messages()[2:] == [("user", "Another story!")]
    model.answers["story"] = Say("A short one.")
    third = terminal().start(f"{server.openai_url}#m", "--continue", HOLDFAST_RETRY_SECONDS="1")
    third.wait_for_text("❯ Tell me a story.", "This story of", "❯ Another story!")
    third.wait_for_text("The last message has no answer yet: Enter continues.")
    third.press("Enter").wait_for_text("The agent continues.", "A short one.")
    third.wait_idle()
    model.answers |= {"interrupted": Say("Here is its end."), "boat": Cut(2, "The boat sails on and on.")}
    third.send("Tell me of the boat.").wait_for_text("✗ The reply broke off: the connection broke.")
    assert "Error" not in third.screen.text() and "transport" not in third.screen.text()
    third.press("Enter").wait_for_text("Here is its end.")


def test_rate_limit_is_waited_for_with_a_countdown(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """As seconds and as a date; a wait that is too long ends the run, and Enter tries again."""

    def answer(request: Request) -> Answer:
        match len(server.requests):
            case 1:
                return RateLimited(retry_after=4)
            case 2:
                later = formatdate(time.time() + 4, usegmt=True)
                return Status(503, "The lock is closed.", headers={"retry-after": later})
            case 3:
                return Status(429, "Come back.", headers={"retry-after": "3600"})
            case _:
                return "At noon."

    server = serve(answer)
    chat = terminal().start(f"{server.openai_url}#m")
    chat.send("The tide?").wait_for_text("(HTTP 429)): retrying in 4 s.")
    wait_until(chat.screen, re.compile(r"retrying in [123] s").search, "a countdown")
    chat.wait_for_text("No answer (The lock is closed. (HTTP 503)): retrying in")
    wait_until(chat.screen, re.compile(r"retrying in [12] s").search, "a countdown")
    chat.wait_for_text("Come back. (HTTP 429); the provider asks to wait 3,600 s. Enter continues.")
    chat.wait_idle()
    chat.press("Enter").wait_for_text("At noon.")


def test_command_dies_with_the_killed_chat_and_the_next_start_offers_to_continue(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    endless = Call("run_command", {"command": "echo $$ > shell; sleep 600"})
    server = serve(lambda request: Say("I wait.", calls=(endless,)) if len(server.requests) == 1 else "All is well.")
    first = terminal().start(f"{server.openai_url}#m", "--yes")
    first.send("Wait for the tide.").wait_for_text("◌ run_command")
    shell = first.folder / "shell"
    wait_until(first.screen, lambda _: shell.exists() and shell.read_text().strip() != "", "a running command")
    first.kill()
    assert process_ended(int(shell.read_text()))
    again = terminal().start(f"{server.openai_url}#m", "--continue")
    again.wait_for_text("The last message has no answer yet: Enter continues.")
    again.press("Enter").wait_for_text("The agent continues.", "All is well.")


SHELL = """
import os, sys
os.execvp("bash", ["bash", "--norc", "-i", "-c", f"{sys.executable} -m holdfast \\"$@\\"; sleep 1; fg", *sys.argv])
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_suspended_chat_is_drawn_again(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    chat = terminal().start(f"{serve().openai_url}#m", program=("-c", SHELL))
    chat.send("The tide?").wait_for_text("a reply")
    chat.press("C-z").wait_without_text("The tide?")
    chat.wait_for_text("The tide?", "a reply", "Ask, or /help")
    chat.send("And now?").wait_for_text("❯ And now? a reply")


def test_text_typed_during_the_start_is_sent(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    """Enter pressed before the screen is there sends it, too."""
    chat = terminal()
    wait = "import sys, time; time.sleep(2); from holdfast.cli import main; sys.argv[0] = 'holdfast'; main()"
    typing = threading.Timer(0.8, lambda: chat.send("Typed early."))
    typing.start()
    chat.start(f"{serve().openai_url}#m", program=("-c", wait)).wait_for_text("❯ Typed early.", "a reply")
    typing.join()
