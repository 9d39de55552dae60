"""The hooks of a service: callbacks before and after a compaction, and listeners."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..context import Plan, Request
from ..errors import InvalidInput
from ..io.processes import ShellResult, run_shell
from ..messages import Json
from .events import CompactionCompleted, CompactionEvent, Origin
from .timeouts import DEFAULT_HOOK_TIMEOUT, hook_time_limit, require_seconds

if TYPE_CHECKING:
    from ..compaction import CompactionResult
    from ..types import Strategy, StrategyFunction
    from .runner import HookRunner


class CommandHook(msgspec.Struct, frozen=True):
    """A shell command, run in the working directory and with the environment of the program."""

    line: str
    timeout: float = DEFAULT_HOOK_TIMEOUT

    def __post_init__(self) -> None:
        if not isinstance(self.line, str) or not self.line.strip():
            raise InvalidInput(f"A command is a line for the shell, as in './check.sh --strict', not {self.line!r}.")
        require_seconds(self.timeout)

    async def run(self, given: Json) -> ShellResult:
        """Runs the command with JSON on its standard input; a timeout kills it and its children."""
        with hook_time_limit(self.timeout):
            return await run_shell(self.line, msgspec.json.encode(given))


class Hooks:
    """The hooks and listeners of a service.

    A hook is a function, async or not, or a shell command; several are run in order. A plain text is a command.
    `timeout` limits functions, in seconds; a `CommandHook` has its own. Listeners are plain functions.
    """

    def __init__(
        self,
        before: BeforeHook | CommandHook | str | Iterable[BeforeHook | CommandHook | str] = (),
        after: AfterHook | CommandHook | str | Iterable[AfterHook | CommandHook | str] = (),
        session_start: SessionStartHook | CommandHook | str | Iterable[SessionStartHook | CommandHook | str] = (),
        listen: Listener | Iterable[Listener] = (),
        *,
        timeout: float = DEFAULT_HOOK_TIMEOUT,
    ) -> None:
        require_seconds(timeout)
        self.before: tuple[BeforeHook | CommandHook, ...] = tuple(map(_validate_hook, _as_sequence(before)))
        self.after: tuple[AfterHook | CommandHook, ...] = tuple(map(_validate_hook, _as_sequence(after)))
        self.session_start: tuple[SessionStartHook | CommandHook, ...] = tuple(
            map(_validate_hook, _as_sequence(session_start))
        )
        self.listen: tuple[Listener, ...] = tuple(map(validate_listener, _as_sequence(listen)))
        self.timeout = timeout

    def joined(self, other: Hooks | None) -> Hooks:
        """Returns these hooks followed by others."""
        if other is None:
            return self
        names = ("before", "after", "session_start", "listen")
        both = {name: (*getattr(self, name), *getattr(other, name)) for name in names}
        return Hooks(**both, timeout=max(self.timeout, other.timeout))

    def around(
        self, session: str, lane: str | None = None, origin: Origin = "manual", listen: Listener | None = None
    ) -> HookRunner:
        """Returns what runs these hooks around one compaction; `listen` receives its events, too."""
        from .runner import HookRunner  # it knows the hooks

        return HookRunner(self, session, lane, origin, listen)


def validate_listener(given: Any) -> Any:
    """Returns the listener; raises unless it is a plain function, since listeners run inside a compaction."""
    called = getattr(given, "__call__", None)  # noqa: B004 - an object may have an async one
    if not callable(given) or isinstance(given, type):
        raise InvalidInput(f"A listener is a function that takes an event, not {given!r}.")
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(called):
        raise InvalidInput("A listener is a plain function: have it put events into a queue that async code reads.")
    return given


def hook_name(hook: Any) -> str:
    """Returns the name of a hook for remarks and logs."""
    if isinstance(hook, CommandHook):
        return repr(hook.line)
    return str(getattr(hook, "__qualname__", type(hook).__qualname__)).rpartition("<locals>.")[2]


def _as_sequence(given: Any) -> Iterable[Any]:
    single = isinstance(given, str | CommandHook) or callable(given) or not isinstance(given, Iterable)
    return [given] if single else given


def _validate_hook(given: Any) -> Any:
    if isinstance(given, str):
        return CommandHook(given)
    if isinstance(given, type) or not (isinstance(given, CommandHook) or callable(given)):
        raise InvalidInput(f"A hook is a function, a CommandHook or the text of a command, not {given!r}.")
    return given


class BeforeCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a before hook: the trigger has fired, and nothing has been done yet."""

    session: str
    origin: Origin
    tokens: int
    request: Request
    """The strategy's input; a hook can build its own plan from it."""
    strategy: Strategy
    """The strategy that would plan the compaction."""
    lane: str | None = None
    budget: int | None = None
    instructions: str | None = None
    """The user's instructions, and those that earlier hooks added."""


class Veto(msgspec.Struct, frozen=True):
    """Do not compact now."""

    why: str = ""

    def __post_init__(self) -> None:
        _require_text(self.why)


class Instructions(msgspec.Struct, frozen=True):
    """Instructions for the summary, in addition to the user's."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text)


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a session-start hook: the session continues from a compacted context."""

    session: str
    origin: Origin
    tokens: int
    """Size of the compacted context."""
    round: int
    lane: str | None = None
    source: Literal["compact"] = "compact"


def _require_text(given: object) -> None:
    if not isinstance(given, str):
        raise InvalidInput(f"The text of a hook's answer must be a string, not {type(given).__name__}.")


if TYPE_CHECKING:
    HookAnswer = Veto | Instructions | Plan | Strategy | StrategyFunction | None
    BeforeHook = Callable[[BeforeCompaction], HookAnswer | Awaitable[HookAnswer]]
    AfterHook = Callable[[CompactionCompleted, CompactionResult], object]
    SessionStartHook = Callable[[SessionStart], str | Awaitable[str | None] | None]
    Listener = Callable[[CompactionEvent], object]
    """A plain function; it runs inside the compaction and should return quickly."""
