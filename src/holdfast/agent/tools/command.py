"""A tool that runs shell commands in the working folder, and passes on their output as it comes."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Annotated

import anyio
import anyio.to_thread
import msgspec

from ...errors import InvalidInput
from ...io.processes import ShellResult, run_shell
from ...io.working_folder import WorkingFolder
from ...recall.tools import ToolAnswer
from .files import MAX_CHARACTERS, AgentTool, ToolArguments
from .sandbox import Sandbox

MAX_COMMAND_SECONDS = 600
OUTPUT_INTERVAL = 0.1
"""Seconds between two pieces of live output."""
_MAX_PIECE = 4_000
"""Characters of one piece; of faster output only the end is passed on."""
OnOutput = Callable[[str], object]


class RunCommand(ToolArguments, frozen=True):
    command: Annotated[str, msgspec.Meta(description="A line for the shell.", min_length=1)]
    seconds: Annotated[int, msgspec.Meta(description="How long it may take.", ge=1, le=MAX_COMMAND_SECONDS)] = 120


def command_tool(folder: WorkingFolder, sandbox: Sandbox | None = None) -> AgentTool:
    """Returns a tool that runs shell commands in the folder, inside a sandbox if there is one."""

    async def run(given: RunCommand, on_output: OnOutput | None = None) -> ToolAnswer:
        if folder.root.resolve() != folder.root:
            raise InvalidInput("The working folder was replaced by a link, so nothing was run.")
        if "\0" in given.command:
            raise InvalidInput("The command has a null byte, and was not run.")
        with anyio.move_on_after(given.seconds):
            command: str | Sequence[str] = given.command
            if sandbox is not None:
                command = await anyio.to_thread.run_sync(sandbox.wrap, given.command, folder.root)
            result = await _run_live(command, folder, on_output)
            output = clip_output("\n".join(filter(None, (result.stdout, result.stderr))))
            text = f"{output}\n[exit code {result.exit_code}]".strip()
            return ToolAnswer(text, is_error=result.exit_code != 0)
        raise InvalidInput(
            f"The command took longer than {given.seconds} s and was stopped, with all processes that it started."
        )

    about = "Run a command in the working folder and read what it prints. It cannot ask anything back."
    return AgentTool("run_command", about, RunCommand, run, changes=True, streams=True)


async def _run_live(command: str | Sequence[str], folder: WorkingFolder, on_output: OnOutput | None) -> ShellResult:
    if on_output is None:
        return await run_shell(command, cwd=folder.root)
    live, done = _LiveOutput(on_output), list[ShellResult | OSError]()
    async with anyio.create_task_group() as group:
        group.start_soon(live.flush_regularly)
        try:
            done.append(await run_shell(command, cwd=folder.root, on_output=live.add))
        except OSError as problem:  # raised here, it would come out of the group as an ExceptionGroup
            done.append(problem)
        group.cancel_scope.cancel()
    if isinstance(done[0], OSError):
        raise done[0]
    return done[0]


class _LiveOutput:
    """Collects output and passes it on at intervals, so that a listener is not called for every line."""

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""

    def add(self, chunk: bytes) -> None:
        self._pending = (self._pending + self._decode(chunk))[-_MAX_PIECE:]

    async def flush_regularly(self) -> None:
        while True:
            await anyio.sleep(OUTPUT_INTERVAL)
            if self._pending:
                piece, self._pending = self._pending, ""
                self._on_output(piece)


def clip_output(text: str) -> str:
    """Keeps the head and the tail: errors are usually at the end."""
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
