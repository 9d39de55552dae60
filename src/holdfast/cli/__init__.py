"""The command line: `holdfast chat`, `compact`, `presets`, `inspect`, `search`, `read`, `restore`, `undo`, `fork`,
`redact`, `import`, `export`, `mcp`, `rpc`, `worker`, `serve`, `connect`, `web`, `verify`, `migrate`, `doctor`,
`config`, `trust`, `lab`, `completion`.

Command modules are imported on first use, so `holdfast --version` and shell completion start fast.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import ShellComplete, get_completion_class

from .. import __version__
from ..errors import HoldfastError
from ..io.arguments import did_you_mean
from ..io.streams import outlive_reader
from .options import NameChoice

BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_COMMANDS = {
    "chat": ("chat", "chat_command"),
    "compact": ("compact", "compact_command"),
    "presets": ("presets", "presets_command"),
    "inspect": ("inspect", "inspect_command"),
    "search": ("search", "search_command"),
    "read": ("search", "read_command"),
    "restore": ("history", "restore_command"),
    "undo": ("history", "undo_command"),
    "fork": ("history", "fork_command"),
    "redact": ("history", "redact_command"),
    "import": ("import_sessions", "import_command"),
    "export": ("export", "export_command"),
    "mcp": ("servers", "mcp_command"),
    "rpc": ("servers", "rpc_command"),
    "worker": ("worker", "worker_command"),
    "serve": ("serve", "serve_command"),
    "connect": ("connect", "connect_command"),
    "web": ("web", "web_command"),
    "verify": ("verify", "verify_command"),
    "migrate": ("doctor", "migrate_command"),
    "doctor": ("doctor", "doctor_command"),
    "config": ("config", "config_command"),
    "trust": ("trust", "trust_command"),
    "lab": ("lab", "lab_command"),
    "completion": ("", "completion_command"),
}
"""Command name → submodule (empty: this one) and attribute, imported on first use."""


class CommandGroup(click.Group):
    """Lazy-loading command group. Turns every failure into one line on stderr and an exit code, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command: click.Command = getattr(
            importlib.import_module(f".{module}" if module else __name__, __name__), attribute
        )
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
        """Run a command and exit with its code."""
        logging.getLogger("holdfast").addHandler(logging.NullHandler())
        logging.getLogger("holdfast").propagate = False
        sys.stdout = outlive_reader(sys.stdout)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            code = super().main(args, prog_name or "holdfast", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as help_request:
            click.echo(help_request.format_message())
            code = BAD_INPUT
        except click.UsageError as problem:
            path = problem.ctx.command_path if problem.ctx else "holdfast"
            code = _print_error(f"{problem.format_message()} See {path} --help.")
        except click.ClickException as problem:
            code = _print_error(problem.format_message())
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = PIPE_CLOSED
        except HoldfastError as problem:
            code = _print_error(str(problem))
        except OSError as problem:
            code = _print_error(f"{problem.filename or 'A file'} cannot be used ({problem.strerror or problem}).")
        except RecursionError:
            code = _print_error("The messages are nested too deeply to be read.")
        sys.exit(code if isinstance(code, int) else 0)


def _print_error(message: str) -> int:
    from .output import echo_error

    echo_error(message)
    return BAD_INPUT


@click.group(
    "holdfast", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, message="holdfast %(version)s")
def main() -> None:
    """Keep an LLM agent's conversation inside its model's window, and lose nothing.

    Try it on a bundled session: holdfast compact example
    """


SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=NameChoice("shell", SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL: bash, zsh or fish.

    \b
    bash: eval "$(holdfast completion bash)"          in ~/.bashrc
    zsh:  eval "$(holdfast completion zsh)"           in ~/.zshrc
    fish: holdfast completion fish | source           in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    # The base class method: BashComplete would start bash to check its version.
    click.echo(ShellComplete.source(kind(ctx.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE")))
