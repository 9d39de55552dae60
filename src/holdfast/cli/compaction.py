"""Compaction options of the command line: strategy, preset, summarizer."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from ..compaction import Abort, CompactionResult, compact
from ..compaction.policy import Policy, find_policy
from ..errors import InvalidInput
from ..io.text import first_line
from ..models import resolve_model, scrub
from ..models.calls import Model, Notice
from ..strategies.names import DEFAULT_STRATEGY, parse_strategy
from ..triggers import always
from .console import show_progress
from .model_window import ModelWindow
from .output import echo

if TYPE_CHECKING:
    from ..types import Strategy


_PURPOSES = {"summary": "the summary", "rollup": "a shorter summary", "repair": "a corrected answer"}


class SummaryProgress:
    """Builds a progress line from the notices of one compaction. Notices arrive on another thread."""

    def __init__(self, model: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._last: Notice | None = None
        self._characters: dict[int, int] = {}
        self._retry_at = 0.0

    def __call__(self, notice: Notice) -> None:
        with self._lock:
            self._last = notice
            if notice.kind in ("calling", "delta", "answered"):
                self._characters[notice.call] = notice.characters
            if notice.kind == "waiting":
                self._retry_at = self._clock() + notice.seconds

    def line(self) -> str:
        with self._lock:
            last, characters = self._last, sum(self._characters.values())
            left = max(0, round(self._retry_at - self._clock()))
        spent = f"{self._clock() - self._started:.0f} s"
        if last is None:
            return f"compacting · {spent}"
        if last.kind == "waiting":
            return f"waiting {left} s, then attempt {last.attempt + 1}: {first_line(last.text)}"
        if last.kind == "answered":
            return f"reading the summary · {spent}"
        fields = (
            f"{'writing' if characters else 'requesting'} {_PURPOSES.get(last.purpose, last.purpose)}",
            f"call {last.call}" if last.call > 1 else "",
            f"attempt {last.attempt}" if last.attempt > 1 else "",
            f"{characters:,} characters" if characters else "",
            spent,
            self._model,
        )
        return " · ".join(filter(None, fields))


@contextmanager
def abort_on_sigint() -> Iterator[Abort]:
    """Sets the abort flag on the first Ctrl-C; a second one raises KeyboardInterrupt.

    An aborted block raises click.Abort even if it finished in the meantime.
    """
    abort = Abort()
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield abort
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        abort()

    signal.signal(signal.SIGINT, stop)
    try:
        yield abort
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if abort.aborted:
        echo("holdfast: aborted: nothing was changed.", err=True)
        raise click.Abort


class CliCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The compaction that the options select: strategy or preset, and the summarizer."""

    strategy: Strategy | None = None
    preset: Policy | None = None
    model: Model | None = None
    summarizer: str | None = None
    """Name of the model as given, without secrets."""
    instructions: str | None = None
    now: bool = False
    option_text: str = ""
    """These options as text, for a command to copy."""

    @property
    def uses_target(self) -> bool:
        """True if the target decides how much to remove, and not a limit of the strategy."""
        return self.preset is None and self.strategy is None

    def resolve_window(self, known: ModelWindow, budget: int | None) -> ModelWindow:
        """A preset's window is --budget, else the model's known window, else the preset's default."""
        if self.preset is None:
            return known
        if budget is not None:
            return msgspec.structs.replace(known, tokens=budget, basis="given")
        return known if known.known else msgspec.structs.replace(known, tokens=self.preset.usual_window)

    def token_limit(self, window: ModelWindow, budget: int | None) -> int:
        """The budget in tokens; for a preset, the window."""
        return window.tokens if self.preset is not None else budget or window.budget

    @property
    def estimator(self) -> str | None:
        return None if self.preset is None else cast("str | None", self.preset.estimator)

    def compact(self, messages: Iterable[Any], limit: int, **options: Any) -> CompactionResult:
        """Compacts with a progress line; Ctrl-C aborts a running model call."""
        if self.model is None:
            with show_progress("compacting"):
                return self._compact(messages, limit, **options)
        progress = SummaryProgress(self.summarizer or self.model.name)
        with abort_on_sigint() as abort, show_progress(progress.line):
            model_options = {"summarizer": self.model, "instructions": self.instructions}
            return self._compact(messages, limit, notify=progress, abort=abort, **model_options, **options)

    def _compact(self, messages: Iterable[Any], limit: int, **options: Any) -> CompactionResult:
        if self.now:
            options["trigger"] = always
        if self.preset is not None:
            return compact(messages, preset=self.preset, window=limit, **options)
        return compact(messages, budget=limit, strategy=self.strategy, **options)


def compaction_from_options(
    strategy: str | None, preset: str | None, summarizer: str | None, instructions: str | None, now: bool
) -> CliCompaction:
    """Validates the options and resolves names; raises InvalidInput for options that exclude each other."""
    if preset is not None and strategy is not None:
        raise InvalidInput("--preset includes a strategy: leave out --strategy or --preset.")
    if instructions is not None and summarizer is None:
        raise InvalidInput("--instructions need a model: name one with --summarizer, or leave them out.")
    if summarizer is not None and strategy not in (None, DEFAULT_STRATEGY):
        raise InvalidInput(f"The strategy {strategy!r} does not use a model: leave out --summarizer or --strategy.")
    model = resolve_model(summarizer)
    named = summarizer if model is None or "://" not in str(summarizer) else model.name
    public = named and scrub(named)
    given = {"--preset": preset, "--summarizer": public, "--instructions": instructions}
    return CliCompaction(
        strategy=parse_strategy(strategy or DEFAULT_STRATEGY),
        preset=None if preset is None else find_policy(preset),
        model=model,
        summarizer=public,
        instructions=instructions,
        now=now,
        option_text=shlex.join(word for option, value in given.items() if value for word in (option, value)),
    )
