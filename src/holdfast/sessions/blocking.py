"""`SessionService` for blocking code: the same methods, run on the event loop of the process's portal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ..compaction import PolicyLike
from ..io.portal import portal
from ..messages import Json, ToolCall
from ..stores import StoreLike
from ..tokens import Estimator
from .service import SessionService
from .turn import Turn

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[SessionService, P], Awaitable[R]],
) -> Callable[Concatenate[BlockingSessionService, P], R]:
    def call(self: BlockingSessionService, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(lambda service: method(service, *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


def _in_turn(method: Callable[Concatenate[Turn, P], Awaitable[R]]) -> Callable[Concatenate[BlockingTurn, P], R]:
    def call(self: BlockingTurn, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return portal.run(lambda: method(self._turn, *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class BlockingTurn:
    """`Turn` for blocking callers, inside its `with` block."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.id, self.session_id, self.key = turn.id, turn.session_id, turn.key

    def __enter__(self) -> Self:
        portal.run(self._turn.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        portal.run(lambda: self._turn.__aexit__(kind, problem, trace))

    @property
    def done(self) -> bool:
        """Whether the model has given its last reply, now or in an earlier attempt."""
        return self._turn.done

    @property
    def interrupted(self) -> bool:
        """Whether an earlier attempt at this turn ended without its reply."""
        return self._turn.interrupted

    @property
    def reply(self) -> Json | None:
        """The last stored reply, as the provider's message."""
        return self._turn.reply

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls to run: those of the last reply that have no stored result."""
        return self._turn.calls

    say = _in_turn(Turn.say)
    request = _in_turn(Turn.request)
    receive = _in_turn(Turn.receive)
    results = _in_turn(Turn.results)
    overflow = _in_turn(Turn.overflow)
    cut_off = _in_turn(Turn.cut_off)


class BlockingSessionService:
    """`SessionService` for blocking callers; use it in a `with` block."""

    def __init__(self, store: StoreLike, **options: Any) -> None:
        self._service = SessionService(store, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def estimator(self) -> Estimator:
        """The estimator that counts tokens."""
        return self._service.estimator

    @property
    def lease_seconds(self) -> float:
        """How long others wait for a process that died."""
        return self._service.lease_seconds

    def call(self, work: Callable[[SessionService], Awaitable[R]]) -> R:
        """Runs async work on the service, in the portal's thread."""
        return portal.run(lambda: work(self._service))

    def close(self) -> None:
        """Closes the service and its store. A program that forgets it ends all the same, and loses nothing."""
        if not portal.stopped:
            portal.run(self._service.close)

    def use_preset(self, preset: PolicyLike) -> None:
        """Switches to another preset and its estimator."""

        async def use(service: SessionService) -> None:
            service.use_preset(preset)

        self.call(use)

    def compacting(self, session_id: str, lane: str | None = None) -> bool:
        """Whether a compaction of this session is running in this service."""
        return self._service.compacting(session_id, lane)

    def turn(self, session_id: str, *, id: str) -> BlockingTurn:
        """Returns one turn of a conversation, to be used in a `with` block."""
        return BlockingTurn(self._service.turn(session_id, id=id))

    @contextmanager
    def announce_turn(self, session_id: str) -> Iterator[None]:
        """Lets other processes know that this one is in a turn."""
        announced = self._service.announce_turn(session_id)
        portal.run(announced.__aenter__)
        try:
            yield
        finally:
            portal.run(lambda: announced.__aexit__(None, None, None))

    others = _blocking(SessionService.others)
    create = _blocking(SessionService.create)
    get = _blocking(SessionService.get)
    list = _blocking(SessionService.list)
    delete = _blocking(SessionService.delete)
    append = _blocking(SessionService.append)
    set_window = _blocking(SessionService.set_window)
    set_prompt = _blocking(SessionService.set_prompt)
    note_overflow = _blocking(SessionService.note_overflow)
    restore = _blocking(SessionService.restore)
    restore_after_results = _blocking(SessionService.restore_after_results)
    remember = _blocking(SessionService.remember)
    memory = _blocking(SessionService.memory)
    blend_memory = _blocking(SessionService.blend_memory)
    pin = _blocking(SessionService.pin)
    policy = _blocking(SessionService.policy)
    set_policy = _blocking(SessionService.set_policy)
    context = _blocking(SessionService.context)
    context_at = _blocking(SessionService.context_at)
    explain = _blocking(SessionService.explain)
    preview = _blocking(SessionService.preview)
    estimate = _blocking(SessionService.estimate)
    preview_undo = _blocking(SessionService.preview_undo)
    events = _blocking(SessionService.events)
    waiting = _blocking(SessionService.waiting)
    size = _blocking(SessionService.size)
    round = _blocking(SessionService.round)
    shown = _blocking(SessionService.shown)
    compact = _blocking(SessionService.compact)
    due = _blocking(SessionService.due)
    ready = _blocking(SessionService.ready)
    prune = _blocking(SessionService.prune)
    undo = _blocking(SessionService.undo)
    fork = _blocking(SessionService.fork)
    handoff = _blocking(SessionService.handoff)
    title = _blocking(SessionService.title)
    redact = _blocking(SessionService.redact)
    redact_text = _blocking(SessionService.redact_text)
    export = _blocking(SessionService.export)
    import_ = _blocking(SessionService.import_)
    verify = _blocking(SessionService.verify)
