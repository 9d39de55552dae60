"""Every command in one session on a real terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

from talks import Talk

from holdfast.chat.commands import COMMANDS

WALK = (
    ("/help", "/compact [INSTRUCTIONS]", "/quit"),
    ("/context", "of 6,000"),
    ("/model", "openai-chat"),
    ("/preset pi", "is compacted by pi from now on"),
    ("/preset holdfast", "is compacted by holdfast from now on"),
    ("/autocompact on", "Automatic compaction is on."),
    ("/autocompact off", "Automatic compaction is off."),
    ("/search slack", "/recall #"),
    ("/recall #2", "It was not brought back"),
    ("/pin #1", "stays visible through every compaction"),
    ("/compact keep the tides", "── compacted"),
    ("/undo", "The last compaction is undone"),
    ("/branch", "When does the tide turn?"),
    ("/branch 1", "Now in session"),
    ("/tree", "└─"),
    ("/sessions", "Go on in another one"),
    ("/edit 1", "before message 1"),
    ("/clear", "A new session"),
    ("/export tides.json messages", "in the format messages"),
)


def test_every_command_can_be_reached_and_shows_its_page(talk: Callable[..., Talk]) -> None:
    """P1, P2, P10, P11, P23: and /handoff puts its draft into the input, /reference asks the session that was left."""
    chat = talk()
    flows = "It flows and ebbs and flows again, twice a day. " * 40
    replies = [f"The tide turns at noon: that is slack water. {flows}That was reply {n}." for n in (1, 2, 3)]
    chat.start(
        chat.script(*replies, repeat=True, summary="The tide turns at noon [2]."),
        "--window",
        "6000",
        "--no-auto-compact",
        size=(80, 40),
    )
    for number, prompt in enumerate(("When does the tide turn?", "And then?", "And after that?"), 1):
        chat.says(prompt).sees(f"That was reply {number}.")
        chat.rests()
    first = _session(chat)
    for line, *shown in WALK:
        chat.says(line).sees(*shown)
        if line == "/edit 1":
            chat.sees("❯ When does the tide turn? ──")
            chat.press("C-c")
    chat.says(f"/sessions {first[-6:]}").sees(f"Now in session {first}")
    chat.says("/handoff tell the skippers").sees("Read its first message, change it, and send it.")
    chat.press("C-c").rests()
    chat.says(f"/reference {first} When does the tide turn?").sees("added to this one")
    chat.says("/nonsense").sees("There is no command /nonsense")
    chat.screen.type("/quit")
    chat.leaves("Enter")
    walked = {line.split()[0][1:] for line, *_ in WALK} | {"handoff", "reference", "quit"}
    assert walked == {command.name for command in COMMANDS}
    assert (chat.folder / "tides.json").is_file()


def _session(chat: Talk) -> str:
    found = re.search(r"\* (\w{20,})", chat.says("/sessions").sees("Go on in another one"))
    assert found
    return found[1]
