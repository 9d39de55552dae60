"""How to compact, as the options say it: by a budget, a strategy or a preset, with a model or without one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..calls import Model
from ..compaction import CompactionResult, compact
from ..errors import InvalidInput
from ..models import model_for, scrub
from ..presets import PRESETS, Preset, preset_named
from ..triggers import always
from .names import OneOf
from .strategies import DEFAULT, complete, strategy_named
from .terminal import working
from .window import Window
from .writing import Writing, stoppable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..types import Strategy

_PROVIDERS = ("anthropic:", "openai:", "openai-responses:", "gemini:", "http://", "https://")


def _complete_summarizer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in _PROVIDERS if name.startswith(incomplete)]


PRESET_NAME = OneOf("preset", tuple(PRESETS), tuple(name.replace("_", "-") for name in PRESETS))
strategy = click.option(
    "--strategy",
    metavar="NAME[:N]",
    shell_complete=complete,
    help="default, sliding:20, turns:10, tokens:4000, last:10, fraction:0.4, prune, ledger, truncate; + joins several.",
)
preset = click.option(
    "--preset",
    type=PRESET_NAME,
    metavar="NAME",
    help="Compact as a known system does, for a window of --budget tokens; holdfast presets lists them.",
)
summarizer = click.option(
    "--summarizer",
    metavar="WHO",
    shell_complete=_complete_summarizer,
    help="The model that writes a summary: anthropic:MODEL, openai:MODEL, gemini:MODEL, http://localhost:8080/v1#MODEL.",
)
instructions = click.option("--instructions", metavar="TEXT", help="What the summary should mind.")
now = click.option("--now", is_flag=True, help="Compact even if it is not needed yet.")


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to compact, with whoever writes the summary."""

    strategy: Strategy | None = None
    preset: Preset | None = None
    model: Model | None = None
    summarizer: str | None = None
    """The model as it was named, without any secret."""
    instructions: str | None = None
    now: bool = False
    asked: str = ""
    """The options that say so, to be copied."""

    @property
    def aims(self) -> bool:
        """Is it the target that decides how far to go, and not a limit of the strategy?"""
        return self.preset is None and self.strategy is None

    def window(self, known: Window, budget: int | None) -> Window:
        """A preset goes by the window: the one that was asked for, else the model's, else its own."""
        if self.preset is None:
            return known
        if budget is not None:
            return msgspec.structs.replace(known, tokens=budget, asked=True)
        return known if known.known else msgspec.structs.replace(known, tokens=self.preset.window)

    def limit(self, window: Window, budget: int | None) -> int:
        """What must not be exceeded."""
        return window.tokens if self.preset is not None else budget or window.budget

    @property
    def estimator(self) -> str | None:
        return None if self.preset is None else self.preset.estimator

    def compact(self, messages: Iterable[Any], limit: int, **options: Any) -> CompactionResult:
        """Compact, with a sign of life; Ctrl-C stops a model that writes."""
        if self.model is None:
            with working("compacting"):
                return self._compact(messages, limit, **options)
        writing = Writing(self.summarizer or self.model.name)
        with stoppable() as abort, working(writing.line):
            asking = {"summarizer": self.model, "instructions": self.instructions}
            return self._compact(messages, limit, notify=writing, abort=abort, **asking, **options)

    def _compact(self, messages: Iterable[Any], limit: int, **options: Any) -> CompactionResult:
        if self.now:
            options["trigger"] = always
        if self.preset is not None:
            return self.preset.compact(messages, limit, **options)
        return compact(messages, budget=limit, strategy=self.strategy, **options)


def way(strategy: str | None, preset: str | None, summarizer: str | None, instructions: str | None, now: bool) -> Way:
    """The way that these options name; options that exclude each other are an error."""
    if preset is not None and strategy is not None:
        raise InvalidInput("--preset has a strategy of its own: leave out --strategy, or the preset.")
    if instructions is not None and summarizer is None:
        raise InvalidInput("--instructions are for a model: name one with --summarizer, or leave them out.")
    if summarizer is not None and strategy not in (None, DEFAULT):
        raise InvalidInput(f"The strategy {strategy!r} asks no model: leave out --summarizer, or --strategy.")
    model = model_for(summarizer)
    named = summarizer if model is None or "://" not in str(summarizer) else model.name
    public = named and scrub(named)
    given = {"--preset": preset, "--summarizer": public, "--instructions": instructions}
    return Way(
        strategy=strategy_named(strategy or DEFAULT),
        preset=None if preset is None else preset_named(preset),
        model=model,
        summarizer=public,
        instructions=instructions,
        now=now,
        asked=shlex.join(word for option, value in given.items() if value for word in (option, value)),
    )
