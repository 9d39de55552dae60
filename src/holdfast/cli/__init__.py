"""The command line: `holdfast chat`, `compact`, `presets`, `inspect`, `search`, `read`, `import`, `export`, `mcp`,
`rpc`, `worker`, `verify`, `migrate`, `doctor`, `config`, `lab`, `completion`.

A command's module is imported when it is called, so that `holdfast --version` and shell completion do
not wait for what they do not use.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..errors import HoldfastError
from .names import did_you_mean

BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_COMMANDS = (
    "chat",
    "compact",
    "presets",
    "inspect",
    "search",
    "read",
    "import",
    "export",
    "mcp",
    "rpc",
    "worker",
    "verify",
    "migrate",
    "doctor",
    "config",
    "lab",
    "completion",
)
_MODULES = {"import": "import_sessions"}
"""Where a command's module cannot have its name."""


class Commands(click.Group):
    """Every way a command can fail ends here: one line on stderr and an exit code, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{_MODULES.get(cmd_name, cmd_name)}", __name__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], _COMMANDS) or f"use one of {', '.join(_COMMANDS)}."
            raise click.UsageError(f"There is no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code."""
        logging.getLogger("holdfast").addHandler(logging.NullHandler())
        logging.getLogger("holdfast").propagate = False
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            code = super().main(args, prog_name or "holdfast", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as asked:
            click.echo(asked.format_message())
            code = BAD_INPUT
        except click.UsageError as problem:
            path = problem.ctx.command_path if problem.ctx else "holdfast"
            code = _refuse(f"{problem.format_message()} See {path} --help.")
        except click.ClickException as problem:
            code = _refuse(problem.format_message())
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = PIPE_CLOSED
        except HoldfastError as problem:
            code = _refuse(str(problem))
        except OSError as problem:
            code = _refuse(f"{problem.filename or 'A file'} cannot be used ({problem.strerror or problem}).")
        except RecursionError:
            code = _refuse("The messages are nested too deep to be read.")
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str) -> int:
    click.echo(f"holdfast: {' '.join(message.split())}", err=True)
    return BAD_INPUT


@click.group(
    "holdfast", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="holdfast", message="holdfast %(version)s")
def main() -> None:
    """Keep an LLM agent's conversation inside its model's window, and lose nothing.

    Try it without a file of your own: holdfast compact example
    """
