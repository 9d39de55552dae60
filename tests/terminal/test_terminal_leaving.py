"""Stopping and leaving, at every moment; and terminals that do not wait for that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harbor_model import SUMMARY, HarborModel
from screens import KINDS, LIMIT, ended
from talks import Talk

from providers import Call, ProviderServer, Say, Stall

ENDLESS = Stall(after=3, text="This story of the sea never comes to its end.")


def test_ctrl_c_stops_what_runs_clears_what_is_typed_and_twice_leaves(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer]
) -> None:
    """While idle, typing, streaming, asked, a tool runs, and compacting (P8)."""
    wait = Call("run_command", {"command": "echo begun > begun; sleep 600"})
    model = HarborModel({"story": ENDLESS, "ask": Say("I ask.", calls=(wait,))})
    chat = talk().start(f"{serve(model).openai_url}#m", "--preset", "claude_code")
    chat.screen.type("half a thought")
    chat.sees("half a thought")
    chat.press("C-c").rests()
    chat.says("Tell me a story.").sees("This story of")
    chat.press("C-c").sees("(stopped)", "Stopped. What was said and done so far is kept.")
    chat.rests()
    chat.says("Now ask me.").sees("May the agent use run_command?")
    chat.press("C-c").sees("✗ run_command echo begun > begun; sleep 600 · stopped")
    chat.rests()
    assert not (chat.folder / "begun").exists()
    chat.says("Please ask again.").sees("May the agent use run_command?")
    chat.press("y").sees("◌ run_command")
    chat.sees_no("May the agent")
    chat.press("C-c").sees_no("◌ run_command")
    chat.rests()
    model.summary = Stall(after=1)
    chat.says("/compact").sees("compacting", "characters")
    chat.press("C-c").sees("The compaction was stopped. Nothing has changed.")
    chat.rests()
    model.summary = SUMMARY
    chat.says("Are you there?").sees("Aye: Are you there?")
    chat.rests()
    chat.press("C-c").sees("Ctrl-C again leaves")
    chat.leaves("C-c")
    said = chat.said()
    assert ("assistant", "This story of the") in said
    assert said[-1] == ("assistant", "Aye: Are you there?")


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_that_vanishes_ends_the_program_and_keeps_the_session(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer], kind: str
) -> None:
    server = serve(HarborModel({"story": ENDLESS}))
    chat = talk(KINDS[kind]()).start(f"{server.openai_url}#m")
    chat.says("Tell me a story.").sees("This story of")
    chat.screen.vanish()
    assert ended(chat.screen.pid)
    assert server.requests[-1].disconnected.wait(LIMIT)
    assert [role for role, _ in chat.said()] == ["user", "assistant"]


def test_who_leaves_or_is_killed_in_the_middle_of_a_reply_goes_on_from_there(
    talk: Callable[..., Talk], serve: Callable[..., ProviderServer]
) -> None:
    """H1: who leaves finds the part that came; after a kill, Enter alone has the prompt answered that never was."""
    model = HarborModel({"story": ENDLESS})
    server = serve(model)
    first = talk().start(f"{server.openai_url}#m")
    first.says("Tell me a story.").sees("This story of")
    session = first.leaves("C-d")
    assert first.said() == [("user", "Tell me a story."), ("assistant", "This story of the")]
    assert server.requests[-1].disconnected.wait(LIMIT)
    second = talk().start(f"{server.openai_url}#m", "--session", session)
    second.sees("the session as it stands", "❯ Tell me a story.", "This story of")
    second.press("Up").sees("❯ Tell me a story. ──")
    second.press("C-c").rests()
    second.says("Another story!").sees("❯ Another story!", "writing")
    second.kill()
    assert second.said()[2:] == [("user", "Another story!")]
    model.answers["story"] = Say("A short one.")
    third = talk().start(f"{server.openai_url}#m", "--continue")
    third.sees("❯ Tell me a story.", "This story of", "❯ Another story!")
    third.press("Enter").sees("The agent goes on.", "A short one.")
