"""The hooks of a service: what is asked before a compaction and after it, and who is told of it (G7, P11)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from .command import Command
from .patience import PATIENCE, must_be_seconds

if TYPE_CHECKING:
    from .questions import AfterHook, BeforeHook, Listener, StartHook


class Hooks:
    """Each is a function, async or not, a shell command, or several of these in the order in which they are asked.

    A plain text is a command. `timeout` is how many seconds a function may take; a `Command` has its own. Listeners
    are plain functions.
    """

    def __init__(
        self,
        before: BeforeHook | Command | str | Iterable[BeforeHook | Command | str] = (),
        after: AfterHook | Command | str | Iterable[AfterHook | Command | str] = (),
        session_start: StartHook | Command | str | Iterable[StartHook | Command | str] = (),
        listen: Listener | Iterable[Listener] = (),
        *,
        timeout: float = PATIENCE,
    ) -> None:
        must_be_seconds(timeout)
        self.before: tuple[BeforeHook | Command, ...] = tuple(map(_hook, _several(before)))
        self.after: tuple[AfterHook | Command, ...] = tuple(map(_hook, _several(after)))
        self.session_start: tuple[StartHook | Command, ...] = tuple(map(_hook, _several(session_start)))
        self.listen: tuple[Listener, ...] = tuple(map(listener, _several(listen)))
        self.timeout = timeout


def listener(given: Any) -> Any:
    """Somebody who can be told while others wait."""
    called = getattr(given, "__call__", None)  # noqa: B004 - an object may have an async one
    if not callable(given) or isinstance(given, type):
        raise InvalidInput(f"A listener is a function that takes an event, not {given!r}.")
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(called):
        raise InvalidInput("A listener is a plain function: let an async one take events from a queue that it fills.")
    return given


def name_of(hook: Any) -> str:
    """As a person would know it again."""
    if isinstance(hook, Command):
        return repr(hook.line)
    return str(getattr(hook, "__qualname__", type(hook).__qualname__)).rpartition("<locals>.")[2]


def _several(given: Any) -> Iterable[Any]:
    alone = isinstance(given, str | Command) or callable(given) or not isinstance(given, Iterable)
    return [given] if alone else given


def _hook(given: Any) -> Any:
    if isinstance(given, str):
        return Command(given)
    if isinstance(given, type) or not (isinstance(given, Command) or callable(given)):
        raise InvalidInput(f"A hook is a function, a Command or the text of one, not {given!r}.")
    return given
