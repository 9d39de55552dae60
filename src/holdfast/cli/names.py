"""Names that people misspell, answered with the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """A question that names the nearest right one; empty if none is near."""
    near = difflib.get_close_matches(given.lower(), list(names), 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else ""


class OneOf(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """One of some names; click's own choice would list them all and not say which was meant."""

    def __init__(self, what: str, names: Sequence[str], hidden: Sequence[str] = ()) -> None:
        self.name = what
        self.names = tuple(names)
        self.hidden = tuple(hidden)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.names and value not in self.hidden:
            raise click.UsageError(not_one_of(self.name, value, self.names, self.hidden), ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


def not_one_of(what: str, given: str, names: Sequence[str], hidden: Sequence[str] = ()) -> str:
    hint = did_you_mean(given, (*names, *hidden))
    article = "an" if what[0] in "aeiou" else "a"
    return f"{given!r} is not {article} {what}: {hint + ' ' if hint else ''}Use one of {', '.join(names)}."
