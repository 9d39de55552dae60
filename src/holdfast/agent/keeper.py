"""What any agent loop needs to stay inside its model's window: before a step, after it, and when it did not fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

import anyio

from ..calls import Failure, StepReply
from ..compaction import Abort, CompactionResult
from ..errors import InvalidInput
from ..events import Event
from ..hooks.events import CompactionEvent, Continued
from ..messages import Message, copy_json, decode_all, encode_all, framed, whole_characters
from ..models import failure_of
from ..presets import Preset, preset_named
from ..service import Context, SessionService
from ..strategies import KeepLedger
from ..triggers import always
from ..view import Request, interrupted
from .cut_off import without_broken_calls
from .events import told
from .following import Followed
from .nudge import nudge
from .remedies import CutOff, Recovery
from .window import Window

log = logging.getLogger("holdfast")
OFF = "automatic compaction is off: compact by hand, or turn it on"
_FULL = 0.80
"""G3: a reply that was cut off in a window less full than this was not cut off by the window."""
PATIENCE = 300.0
"""Seconds that a step waits for a compaction elsewhere: no job takes longer (W12)."""


class Keeper:
    """Keeps one conversation inside its model's window. It never raises because of a compaction (L11).

    With `sessions` and `session_id` it works on a session of yours. Without, it follows the list of messages that
    you hand to `prepare_step`, and gives back the list to send; `system` and `tools` are what you send beside it.
    """

    def __init__(
        self,
        sessions: SessionService | None = None,
        session_id: str | None = None,
        *,
        model: str | None = None,
        window: int | Window | None = None,
        preset: str | Preset = "holdfast",
        summarizer: Any = None,
        auto: bool = True,
        system: Any = None,
        tools: Any = None,
        format: str | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        if session_id is not None and sessions is None:
            raise InvalidInput("session_id= names a session: pass the service that has it as sessions=, too.")
        if session_id is not None and (system is not None or tools is not None):
            raise InvalidInput("A session has a system prompt and tools of its own: hand them to create(), not here.")
        self._followed = None
        if session_id is None or sessions is None:
            self._followed = Followed(sessions, format, system=system, tools=tools, model=model)
            sessions = self._followed.sessions
        self.sessions = sessions
        self._session_id = session_id
        self.preset = preset_named(preset)
        self.window = window if isinstance(window, Window) else Window(window, model, self.preset.window)
        self.summarizer = summarizer
        self.auto = auto
        """Is automatic compaction on? Where it is off, nothing is compacted unless somebody asks (P2)."""
        self.format = format
        self.listen = listen
        self.abort = Abort()
        self._retried_at: int | None = None
        """The session's version when a prompt was last made smaller: nothing was said since."""
        self._went_on = False

    @property
    def session_id(self) -> str:
        return self._session_id or (self._followed.session_id if self._followed else "")

    # -- before and after a step ----------------------------------------------------------------------

    async def prepare_step(self, messages: Sequence[Any] | None = None) -> Context:
        """What to send now: waits for a compaction that is running, and compacts if it is time (G2, L12, W13)."""
        if self._followed is not None:
            if messages is None:
                raise InvalidInput("Hand in the messages, or make the keeper with sessions= and session_id=.")
            await self._followed.follow(messages)
        await self.sessions.ready(self.session_id, PATIENCE)
        if self._followed is None:
            await self._close_calls()
        compacted = await self.compact_if_due()
        return await self._going_on(await self.context(), compacted=compacted)

    async def on_step_finish(self, reply: StepReply | Sequence[Any] | Any, usage: Any = None) -> list[Event]:
        """Store what the model said, with the tokens that the provider counted (L12, P3).

        Where the keeper follows your list, the reply is stored when it comes with the list, and only counted here.
        """
        self._went_on = False
        return await self.store(reply, usage)

    async def store(self, reply: StepReply | Sequence[Any] | Any, usage: Any = None) -> list[Event]:
        """Store a reply, without calls whose JSON breaks off. Nobody stops it in the middle: a person has read it."""
        messages = without_broken_calls(self._read(reply)[0])
        usage = usage or getattr(reply, "usage", None)
        if self._followed is not None:
            self._followed.usage = usage
            return []
        events: list[Event] = []
        with anyio.CancelScope(shield=True):
            if messages:
                events = await self.sessions.append(self.session_id, messages, usage=usage)
        return events

    async def compact_if_due(self) -> bool:
        """Compact if the trigger fires. False where nothing was changed, whatever the reason."""
        if not self.auto:
            return False
        result = await self._unasked(self.preset.trigger_in(self.window.size), self.window.size)
        return result is not None and result.tokens_saved > 0

    async def compact(self, instructions: str | None = None, abort: Abort | None = None) -> CompactionResult:
        """Compact now, because a person asks (P1)."""
        return await self._compact(always, self.window.size, instructions=instructions, abort=abort)

    # -- when it did not fit ---------------------------------------------------------------------------

    async def on_overflow(self, problem: Failure | BaseException, *, streamed: bool = False) -> Recovery:
        """The provider says that the prompt is too long: compact whatever the size, and try again once (G3)."""
        failure = problem if isinstance(problem, Failure) else failure_of(problem)
        if failure.kind != "overflow":
            return Recovery(False, f"this is no overflow ({failure.kind}): {failure.why}")
        before = await self.context()
        sent = before.tokens
        self.window.learn(failure.window, sent, failure.why)
        if streamed:
            return Recovery(False, "a part of the reply was shown already: asking again would say it twice")
        if not self.auto:
            return Recovery(False, OFF)
        if self._retried_at == before.version:
            return Recovery(False, "the prompt was too long again after it had been compacted")
        budget = max(1, min(self.window.size, sent - 1))
        result = await self._unasked(_at_once, budget)
        if result is None or result.tokens_after >= sent:
            result = await self._unasked(_at_once, budget, KeepLedger(budget // 2), urgent=True)
        if (after := await self.context()).tokens >= sent:
            why = result.why if result is not None else "the compaction failed"
            return Recovery(False, f"it could not be made smaller: {why}")
        context = await self._going_on(after, compacted=True)
        self._retried_at = context.version
        return Recovery(True, context=context)

    async def on_length(self, reply: StepReply | Sequence[Any] | Any, usage: Any = None) -> CutOff:
        """The reply was cut off: keep its whole calls; compact and go on if the window was the reason (G3)."""
        said, format = self._read(reply)
        kept = without_broken_calls(said)
        events = await self.store(reply, usage)
        status, why = await self.make_room()
        calls = tuple(call for message in kept for call in message.calls)
        return CutOff(status, encode_all(kept, format), calls, events, why)

    async def make_room(self) -> tuple[Literal["go_on", "max_tokens"], str]:
        """After a reply that was cut off and is stored: compact, once, if the window is full; else it ends there."""
        full = self.window.utilization(await self.context(), self.sessions.estimator)
        if full <= _FULL:
            return "max_tokens", f"the reply is too long, with {full:.0%} of the window in use"
        if not self.auto:
            return "max_tokens", OFF
        if self._went_on:
            return "max_tokens", "the reply was cut off again after a compaction"
        result = await self._unasked(_at_once, self.window.size)
        if result is None or not result.tokens_saved:
            return "max_tokens", f"nothing could be compacted: {result.why if result else 'the compaction failed'}"
        self._went_on = True
        await self._going_on(await self.context(), compacted=True)
        return "go_on", ""

    # -- for the above ---------------------------------------------------------------------------------

    async def context(self) -> Context:
        return await self.sessions.context(self.session_id, format=self.format)

    async def _close_calls(self) -> None:
        """Calls that something came between get a result that says so: no provider takes them without one."""
        if calls := await self.sessions.waiting(self.session_id):
            closing = Message("tool", tuple(interrupted(call) for call in calls))
            await self.sessions.append(self.session_id, closing)

    async def _going_on(self, context: Context, *, compacted: bool) -> Context:
        """What to send; a model that was in the middle of something is told to go on."""
        if text := nudge(context, compacted=compacted, own=self._followed is None):
            await self.sessions.append(self.session_id, framed(text, aside=True), aside=True)
            if self.listen is not None and compacted:
                told(self.listen, Continued(self.session_id, text))
            context = await self.context()
        return self._followed.shown(context, compacted) if self._followed is not None else context

    def _read(self, reply: StepReply | Sequence[Any] | Any) -> tuple[list[Message], str]:
        given = reply.messages if isinstance(reply, StepReply) else reply
        given = given if isinstance(given, list | tuple) else [given]
        return decode_all([whole_characters(copy_json(message)) for message in given], self.format)

    async def _unasked(
        self, trigger: Callable[[Request], bool], budget: int, strategy: Any = None, *, urgent: bool = False
    ) -> CompactionResult | None:
        """A compaction that nobody asked for; None where it broke."""
        try:
            return await self._compact(trigger, budget, strategy, urgent=urgent)
        except Exception:
            log.exception("a compaction of session %s broke: the conversation goes on without it", self.session_id)
            return None

    async def _compact(
        self,
        trigger: Callable[[Request], bool],
        budget: int,
        strategy: Any = None,
        *,
        instructions: str | None = None,
        abort: Abort | None = None,
        urgent: bool = False,
    ) -> CompactionResult:
        return await self.sessions.compact(
            self.session_id,
            trigger,
            strategy or self.preset.strategy,
            "rebase",
            budget=budget,
            target=self.preset.target_in(budget),
            instructions=instructions,
            summarizer=self.summarizer,
            abort=abort or self.abort,
            listen=self.listen,
            urgent=urgent,
        )


def _at_once(request: Request) -> bool:
    """Fires always, and yet nobody asked: the breaker is minded."""
    return True
