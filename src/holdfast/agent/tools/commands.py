"""Running commands in the working folder. A person is asked first: a shell can do whatever the person could."""

from __future__ import annotations

from typing import Annotated

import anyio
import msgspec

from ...errors import InvalidInput
from ...shell import run_shell
from .files import MOST
from .folder import Folder
from .tool import AgentTool, Arguments

LONGEST = 600


class RunCommand(Arguments, frozen=True):
    command: Annotated[str, msgspec.Meta(description="A line for the shell.", min_length=1)]
    seconds: Annotated[int, msgspec.Meta(description="How long it may take.", ge=1, le=LONGEST)] = 120


def command_tool(folder: Folder) -> AgentTool:
    async def run(given: RunCommand) -> str:
        with anyio.move_on_after(given.seconds):
            said = await run_shell(given.command, folder=folder.root)
            output = _shortened("\n".join(filter(None, (said.out, said.err))))
            return f"{output}\n[exit code {said.code}]".strip()
        raise InvalidInput(f"It took longer than {given.seconds} s and was ended, with all that it had started.")

    about = "Run a command in the working folder and read what it prints. It cannot ask anything back."
    return AgentTool("run_command", about, RunCommand, run, changes=True)


def _shortened(text: str) -> str:
    """Head and tail: what a command is about stands first, what went wrong last."""
    if len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
