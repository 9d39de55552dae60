"""Commands from Markdown files of the project and of the user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_harness import CommandHarness, collapse

from holdfast.chat.commands import complete_line, hidden_command_notes

pytestmark = pytest.mark.anyio
FRONT = "---\ndescription: review a file\nargument-hint: FILE\n---\n"


@pytest.fixture
def harbor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "harbor"
    for name, text in {
        ".holdfast/commands/review.md": f"{FRONT}Review $1 ($ARGUMENTS).",
        ".holdfast/commands/compact.md": "Never sent.",
        ".claude/commands/tides.md": "Read the tides.",
        ".claude/commands/review.md": "Not this one.",
        "../config/holdfast/commands/tides.md": "Not this one either.",
        "../config/holdfast/commands/mine.md": "Mine: $2 before $1.",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


async def test_custom_commands_send_their_text_with_arguments(harbor: Path) -> None:
    async with CommandHarness(harbor, ["Aye."] * 9).open() as chat:
        await chat.run_all('/review "my log.txt" twice', "/tides now", "/tides", "/MINE a b c")
        prompts = [text for text in await chat.texts() if text != "Aye."]
        assert prompts == [
            'Review my log.txt ("my log.txt" twice).',
            "Read the tides.\n\nnow",
            "Read the tides.",
            "Mine: b before a.",
        ]


async def test_custom_commands_are_listed_and_built_in_names_win(harbor: Path) -> None:
    async with CommandHarness(harbor, ["Aye."] * 9).open() as chat:
        shown = collapse((await chat.run("/help")).text)
        assert "/review FILE review a file" in shown and "/tides send tides.md: Read the tides." in shown
        assert "/compact is a built-in command. Rename the file." in shown
        assert hidden_command_notes(chat.chat)[0].startswith(str(harbor / ".holdfast/commands/compact.md"))
        assert await complete_line(chat.chat, "/re") == ["/rewind", "/reference", "/recall", "/review"]
        assert (await chat.run("/help review")).text == "/review FILE: review a file."
        assert "did you mean /review?" in (await chat.run("/reviw x")).text
        assert "Nothing was changed" in (await chat.run("/compact")).text


async def test_h14_custom_commands_of_a_folder_that_is_not_trusted_are_not_read(harbor: Path) -> None:
    async with CommandHarness(harbor, ["Aye."] * 9, project=None).open() as chat:
        assert "no command /review" in (await chat.run("/review x")).text
        await chat.run("/tides")
        assert (await chat.texts())[0] == "Not this one either."


async def test_h14_custom_commands_that_link_out_of_the_project_or_never_end_are_left_out(harbor: Path) -> None:
    """A link to a file of the user, to a device that never ends, and a pipe that nobody writes to."""
    folder = harbor / ".claude" / "commands"
    (harbor.parent / "secret.txt").write_text("secret")
    (folder / "secret.md").symlink_to(harbor.parent / "secret.txt")
    (folder / "endless.md").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.md")
    (folder / "linked.md").symlink_to(folder / "tides.md")
    async with CommandHarness(harbor, ["Aye."] * 9).open() as chat:
        for name in ("secret", "endless", "pipe"):
            assert "no command" in (await chat.run(f"/{name}")).text
        assert (
            sum(
                f"{folder}/{name}.md is not used" in note
                for name in ("secret", "endless", "pipe")
                for note in hidden_command_notes(chat.chat)
            )
            == 3
        )
        await chat.run("/linked")
        assert (await chat.texts())[0] == "Read the tides."
