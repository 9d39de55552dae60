"""`holdfast completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from .names import OneOf

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=OneOf("shell", SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL: bash, zsh or fish.

    \b
    bash: eval "$(holdfast completion bash)"          in ~/.bashrc
    zsh:  eval "$(holdfast completion zsh)"           in ~/.zshrc
    fish: holdfast completion fish | source           in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    # The plain method: bash's own would start a bash to look at its version.
    click.echo(ShellComplete.source(kind(ctx.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE")))
